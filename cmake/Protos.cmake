# Target serving_protos: C++ for the messages of TF Serving and of gRPC's health check. Debian's
# protoc generates it for Debian's protobuf from the descriptors in the wheels.
set(SERVING_PROTOSET ${CMAKE_BINARY_DIR}/serving_protos.binpb)
set(SERVING_PROTO_DIR ${CMAKE_BINARY_DIR}/serving_protos)
execute_process(
  COMMAND ${COLCAST_PYTHON} ${CMAKE_SOURCE_DIR}/server/protos/collect_descriptors.py
          ${SERVING_PROTOSET}
  OUTPUT_VARIABLE serving_proto_files COMMAND_ERROR_IS_FATAL ANY)
# libprotobuf has the well-known types.
list(FILTER serving_proto_files EXCLUDE REGEX "^google/protobuf/")

find_program(PROTOC protoc REQUIRED)
file(MAKE_DIRECTORY ${SERVING_PROTO_DIR})

set(serving_sources ${serving_proto_files})
list(TRANSFORM serving_sources REPLACE "(.*)\\.proto$" "${SERVING_PROTO_DIR}/\\1.pb.cc")
add_custom_command(
  OUTPUT ${serving_sources}
  COMMAND ${PROTOC} --descriptor_set_in=${SERVING_PROTOSET} --cpp_out=${SERVING_PROTO_DIR}
          ${serving_proto_files}
  DEPENDS ${SERVING_PROTOSET}
  COMMENT "Generating C++ from the wheels' protos"
  VERBATIM)

add_library(serving_protos STATIC ${serving_sources})
target_include_directories(serving_protos SYSTEM PUBLIC ${SERVING_PROTO_DIR})
target_compile_options(serving_protos PRIVATE -O1 -w)
# Compiled one by one, because all files that protoc writes have the same local names.
set_target_properties(serving_protos PROPERTIES UNITY_BUILD OFF)
target_link_libraries(serving_protos PUBLIC static_libraries)

# Target config_protos: C++ for the messages in server/protos/*.proto, which the
# tensorflow-serving-api wheel lacks. Include as "server/protos/NAME.pb.h".
file(GLOB config_proto_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
     ${CMAKE_SOURCE_DIR}/server/protos/*.proto)
set(CONFIG_PROTO_DIR ${CMAKE_BINARY_DIR}/config_protos)
file(MAKE_DIRECTORY ${CONFIG_PROTO_DIR})
set(config_sources "")
foreach(proto IN LISTS config_proto_files)
  string(REGEX REPLACE "\\.proto$" ".pb.cc" source ${proto})
  list(APPEND config_sources ${CONFIG_PROTO_DIR}/${source})
endforeach()
add_custom_command(
  OUTPUT ${config_sources}
  COMMAND ${PROTOC} --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${CONFIG_PROTO_DIR}
          ${config_proto_files}
  DEPENDS ${config_proto_files}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  COMMENT "Generating C++ from server/protos"
  VERBATIM)

add_library(config_protos STATIC ${config_sources})
target_include_directories(config_protos SYSTEM PUBLIC ${CONFIG_PROTO_DIR})
target_compile_options(config_protos PRIVATE -O1 -w)
set_target_properties(config_protos PROPERTIES UNITY_BUILD OFF)
target_link_libraries(config_protos PUBLIC static_libraries)
