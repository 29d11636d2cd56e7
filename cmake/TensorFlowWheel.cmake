# Target tensorflow_wheel: the headers, flags and libraries of an installed TensorFlow wheel.
set(COLCAST_TENSORFLOW "" CACHE PATH "Folder `tensorflow` of a wheel to build for instead of COLCAST_PYTHON's")
set(TENSORFLOW_DIR "${COLCAST_TENSORFLOW}")
if(NOT TENSORFLOW_DIR)
  execute_process(
    COMMAND ${COLCAST_PYTHON} -c
      "import importlib.util as u; print(u.find_spec('tensorflow').submodule_search_locations[0])"
    OUTPUT_VARIABLE TENSORFLOW_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
if(CMAKE_CROSSCOMPILING)
  file(GLOB TENSORFLOW_VERSION RELATIVE ${TENSORFLOW_DIR}/.. ${TENSORFLOW_DIR}/../tensorflow-*.dist-info)
  string(REGEX REPLACE "tensorflow-(.*)[.]dist-info" "\\1" TENSORFLOW_VERSION "${TENSORFLOW_VERSION}")
else()
  execute_process(
    COMMAND ${COLCAST_PYTHON} -c
      "import ctypes; f = ctypes.CDLL('${TENSORFLOW_DIR}/libtensorflow_cc.so.2').TF_Version; f.restype = ctypes.c_char_p; print(f().decode())"
    OUTPUT_VARIABLE TENSORFLOW_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

add_library(tensorflow_wheel INTERFACE)
target_include_directories(tensorflow_wheel SYSTEM INTERFACE ${TENSORFLOW_DIR}/include)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # The wheel's own instruction set: other flags would change the layout of Eigen's objects.
  target_compile_options(tensorflow_wheel INTERFACE -mavx -msse4.2)
else()
  # The wheel's compiler, clang, defines this, and abseil's hashes depend on it: without it, lookups in maps that the
  # wheel has filled fail.
  target_compile_options(tensorflow_wheel INTERFACE -D__ARM_ACLE=200)
endif()
target_compile_options(tensorflow_wheel INTERFACE -D_GLIBCXX_USE_CXX11_ABI=1 -DEIGEN_MAX_ALIGN_BYTES=64)
target_link_directories(tensorflow_wheel INTERFACE ${TENSORFLOW_DIR})
target_link_libraries(tensorflow_wheel INTERFACE
  # Without --no-as-needed, nothing would load the library that registers the session factory.
  -Wl,--no-as-needed -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 -Wl,--as-needed)
# Where programs in the build folder find these libraries; installed programs look elsewhere.
set(CMAKE_BUILD_RPATH ${TENSORFLOW_DIR})
