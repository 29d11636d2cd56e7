# Targets serving_protos and config_protos: C++ that Debian's protoc generates for Debian's protobuf.
find_program(PROTOC protoc REQUIRED)

# add_protos(NAME SOURCE_ARGUMENT DEPENDENCIES FILE...): a library of the messages in the files, which protoc finds by
# SOURCE_ARGUMENT. Include as "FILE.pb.h".
function(add_protos name source dependencies)
  set(folder ${CMAKE_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${folder})
  set(generated ${ARGN})
  list(TRANSFORM generated REPLACE "(.*)\\.proto$" "${folder}/\\1.pb.cc")
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${PROTOC} ${source} --cpp_out=${folder} ${ARGN}
    DEPENDS ${dependencies}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMENT "Generating C++ for ${name}"
    VERBATIM)
  add_library(${name} STATIC ${generated})
  target_include_directories(${name} SYSTEM PUBLIC ${folder})
  target_compile_options(${name} PRIVATE -O1 -w)
  # Compiled one by one, because all files that protoc writes have the same local names.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${name} PUBLIC static_libraries)
endfunction()

# The messages of TF Serving and of gRPC's health check, from the descriptors in the wheels.
set(SERVING_PROTOSET ${CMAKE_BINARY_DIR}/serving_protos.binpb)
execute_process(
  COMMAND ${COLCAST_PYTHON} ${CMAKE_SOURCE_DIR}/server/protos/collect_descriptors.py ${SERVING_PROTOSET}
  OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
list(FILTER files EXCLUDE REGEX "^google/protobuf/") # libprotobuf has the well-known types
add_protos(serving_protos --descriptor_set_in=${SERVING_PROTOSET} ${SERVING_PROTOSET} ${files})
colcast_precompile(serving_protos PRIVATE
  <google/protobuf/generated_message_reflection.h> <google/protobuf/map_field_inl.h> <google/protobuf/message.h>
  <google/protobuf/reflection_ops.h> <google/protobuf/wire_format.h>)

# The messages that the tensorflow-serving-api wheel lacks.
file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/server/protos/*.proto)
add_protos(config_protos --proto_path=${CMAKE_SOURCE_DIR} "${files}" ${files})
colcast_precompile(config_protos REUSE_FROM serving_protos)
