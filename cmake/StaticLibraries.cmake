# Target static_libraries: the Debian libraries that the executable links, as archives. TensorFlow's
# wheel exports symbols with the same names (BoringSSL, zlib, protobuf, abseil). Because the
# executable links them statically and exports none, neither side uses the other's symbols.
set(archives nghttp2 protobuf ssl crypto z)
set(libraries ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
file(STRINGS ${libraries}/pkgconfig/libcrypto.pc zstd REGEX "-lzstd")
if(zstd)  # from Debian 13 on
  list(APPEND archives zstd)
endif()
file(GLOB absl_archives ${libraries}/libabsl_*.a)
if(NOT absl_archives)
  message(FATAL_ERROR "libabsl-dev's archives not found; scripts/setup.sh installs them")
endif()

add_library(static_libraries INTERFACE)
list(TRANSFORM archives PREPEND "-l:lib")
list(TRANSFORM archives APPEND ".a")
target_link_libraries(static_libraries INTERFACE
  -Wl,--start-group ${archives} ${absl_archives} -Wl,--end-group
  pthread dl)
