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
