# Target grpc_static: Debian's gRPC and all it needs as archives. TensorFlow's wheel exports
# symbols of the same names (BoringSSL, RE2, zlib, protobuf, abseil); with everything linked
# statically and nothing exported, neither side can reach the other's.
set(archives grpc++ grpc address_sorting upb cares gpr protobuf re2 ssl crypto z)
file(GLOB absl_archives /usr/lib/*/libabsl_*.a)
if(NOT absl_archives)
  message(FATAL_ERROR "libabsl-dev's archives not found; scripts/setup.sh installs them")
endif()


add_library(grpc_static INTERFACE)
list(TRANSFORM archives PREPEND "-l:lib")
list(TRANSFORM archives APPEND ".a")
target_link_libraries(grpc_static INTERFACE
  -Wl,--start-group ${archives} ${absl_archives} -Wl,--end-group
  pthread dl)
