# How Hone is built: flags, outside packages, and the functions by which a folder says what it is made of.
#   hone_library(NAME [DEPS ...] [SUBDIRS ...] [EXCLUDE ...])   the folder's *.cc as static library hone_NAME
#   hone_proto(NAME FILE)                                       FILE.proto as hone_NAME_proto, protobuf-lite
#   hone_embed(NAME FUNCTION FILES...)                          the text files in hone_NAME, where FUNCTION() gives them (base/embedded_file.h)
#   hone_separate(PATTERNS...)                                 files that are compiled one by one also where HONE_UNITY is on
#   hone_executable(NAME SOURCES ... [DEPS ...])                <build>/bin/NAME
#   hone_test_area(AREA [DEPS ...])                             a folder of tests as AREA_test and AREA_slow_test
#   hone_test(NAME SOURCES ... [LABELS ...] [DEPS ...])         a GoogleTest executable whose cases are ctest tests
# DEPS are names of Hone libraries ("base" for hone_base) or any CMake target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Inside of another project only the library is built, unless that project asks for more; and nothing is set that the other project would see.
option(HONE_TOOLS "Build hone-compile, hone-run and hone-dump" ${PROJECT_IS_TOP_LEVEL})
option(HONE_TESTS "Build tests, examples and benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(HONE_INSTALL "Install Hone with the project" ${PROJECT_IS_TOP_LEVEL})
option(HONE_WERROR "Make warnings errors" ${PROJECT_IS_TOP_LEVEL})  # others' compilers may know warnings that were not there when this was written

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# No -march: the compiler and the runtime themselves are plain x86-64; fast code for the host comes from LLVM and oneDNN.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
# -g1: function names and lines for the stack traces, in half the time and space.
# vptr is left out: it needs the type information of every class of LLVM that ours derive from. So are null, object-size and pointer-overflow, whose findings AddressSanitizer reports, too,
# when the memory is touched: they take a fourth of the time to compile. Of code with checks in it gcc says that something may not be initialized that always is.
set(CMAKE_CXX_FLAGS_ASAN "-Og -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=vptr,null,object-size,pointer-overflow,alignment -fno-sanitize-recover=all -Wno-maybe-uninitialized")
# Alignment is checked in the libraries that take bytes for numbers themselves; in the others these checks, most of them for strings and vectors, were a third of the object code.
set(HONE_LIBRARIES_OF_BYTES base formats frontend host ir passes runtime)
# -no-pie: at a fixed address the tables of a million checks are not relocated at each start, of which the tests make thousands.
# -u: every program links base/known_leaks.cc, of which nothing else asks for anything.
# gold, where there is one, takes half of bfd's processor time for programs that are mostly checks and lines.
find_program(HONE_GOLD ld.gold)
set(CMAKE_EXE_LINKER_FLAGS_ASAN "-no-pie -Wl,-u,__lsan_default_suppressions")
if(HONE_GOLD)
  string(APPEND CMAKE_EXE_LINKER_FLAGS_ASAN " -fuse-ld=gold")
endif()
set(CMAKE_CXX_FLAGS_TSAN "-O1 -g1 -fno-omit-frame-pointer -fsanitize=thread")
# Of tests, which are two thirds of what there is to compile and need not be fast: -O0 takes 0.7 of the time of -O1, with sanitizers less than half.
# But these spend most of their time in their own code: random graphs took 1.4 times as long.
set(HONE_TESTS_THAT_COMPUTE random_graphs_test hone_test_support hone_test_gradients hone_test_op_cases)
set(HONE_TEST_FLAGS "$<$<CONFIG:Asan,Tsan>:-O0>;$<$<CONFIG:Release>:$<IF:$<IN_LIST:$<TARGET_PROPERTY:NAME>,${HONE_TESTS_THAT_COMPUTE}>,-O1,-O0>>")
option(HONE_OPENMP "Run kernels on OpenMP's pool; OFF: on std::thread, for ThreadSanitizer" ON)
# Half of what is compiled is the parsing of headers. Files of a folder share one namespace then, the unnamed ones included.
option(HONE_UNITY "Compile several files of a library or test as one" ${PROJECT_IS_TOP_LEVEL})
set(CMAKE_UNITY_BUILD ${HONE_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

find_program(HONE_CCACHE ccache)
if(HONE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HONE_CCACHE})
endif()

# Only libraries that are really used: a test of base must not load LLVM.
add_link_options(-Wl,--as-needed)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

# A target name for each of `names`: hone_NAME for our own libraries.
function(hone_targets result)
  set(targets)
  foreach(name ${ARGN})
    if(TARGET hone_${name})
      list(APPEND targets hone_${name})
    elseif(TARGET ${name})
      list(APPEND targets ${name})
    elseif(name MATCHES "/")  # a library by its path
      list(APPEND targets ${name})
    else()
      message(FATAL_ERROR "DEPS names '${name}', which is neither a Hone library nor a target seen so far")
    endif()
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# Tables are written with designated initializers; a field left out has its default on purpose.
function(hone_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${HONE_WERROR}>:-Werror> -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms on short strings in gcc 12 (its bug 105651)
    if(HONE_UNITY)
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # it takes each included file for a header
    endif()
  endif()
endfunction()

function(hone_separate)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(hone_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;SUBDIRS;EXCLUDE")
  set(patterns *.cc)
  foreach(subdir ${arg_SUBDIRS})
    list(APPEND patterns ${subdir}/*.cc)
  endforeach()
  file(GLOB sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  if(arg_EXCLUDE)
    file(GLOB excluded RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${arg_EXCLUDE})
    list(REMOVE_ITEM sources ${excluded})
  endif()
  hone_targets(deps ${arg_DEPS})
  if(sources)
    add_library(hone_${name} STATIC ${sources})
    target_include_directories(hone_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(hone_${name} PUBLIC ${deps})
    hone_warnings(hone_${name})
    if(name IN_LIST HONE_LIBRARIES_OF_BYTES)
      target_compile_options(hone_${name} PRIVATE $<$<CONFIG:Asan>:-fsanitize=alignment>)
    endif()
  else()  # headers only
    add_library(hone_${name} INTERFACE)
    target_include_directories(hone_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(hone_${name} INTERFACE ${deps})
  endif()
endfunction()

# The header is included as "<folder>/FILE.pb.h". Warnings are off here, and only here: the code is protoc's.
function(hone_proto name file)
  set(proto ${CMAKE_CURRENT_SOURCE_DIR}/${file}.proto)
  file(RELATIVE_PATH stem ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(generated ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h
    COMMAND protobuf::protoc --cpp_out=lite:${generated} -I ${PROJECT_SOURCE_DIR} ${proto}
    DEPENDS ${proto} VERBATIM)
  add_library(hone_${name}_proto STATIC ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h)
  target_include_directories(hone_${name}_proto SYSTEM PUBLIC ${generated})
  target_compile_options(hone_${name}_proto PRIVATE -w)
  target_link_libraries(hone_${name}_proto PUBLIC protobuf::libprotobuf-lite)
endfunction()

function(hone_embed name function)
  set(out ${PROJECT_BINARY_DIR}/generated/${function}.cc)
  list(JOIN ARGN "|" files)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DFUNCTION=${function} -DOUT=${out} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(hone_${name} PRIVATE ${out})
endfunction()

function(hone_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  hone_targets(deps ${arg_DEPS})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${deps})
  hone_warnings(${name})
endfunction()

if(HONE_TESTS)
  find_package(GTest REQUIRED)
  find_package(pugixml REQUIRED)
  include(GoogleTest)
endif()
function(hone_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LABELS;DEPS")
  if(NOT arg_LABELS)
    set(arg_LABELS fast)
  endif()
  if(NOT TARGET fast_tests)
    add_custom_target(fast_tests)  # all that tests with this label need
  endif()
  hone_executable(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE -Wno-dangling-else)  # gcc takes `if (x) EXPECT_EQ(...)` for an ambiguous else
  if("${arg_LABELS}" STREQUAL "fast")
    add_dependencies(fast_tests ${name})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 900
    ENVIRONMENT GOMP_SPINCOUNT=2000)  # tests run side by side: threads that spin at barriers would starve each other
endfunction()

# A folder of tests: AREA/*_test.cc as AREA_test (label fast), AREA/*_slow_test.cc as AREA_slow_test (label full), the folder's other *.cc in both.
function(hone_test_area area)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  file(GLOB rest RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${area}/*.cc)
  set(slow ${rest})
  set(fast ${rest})
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER fast INCLUDE REGEX "_test\\.cc$")
  list(FILTER fast EXCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER rest EXCLUDE REGEX "_test\\.cc$")
  if(fast)
    hone_test(${area}_test LABELS fast SOURCES ${fast} ${rest} DEPS ${arg_DEPS})
  endif()
  if(slow)
    hone_test(${area}_slow_test LABELS full SOURCES ${slow} ${rest} DEPS ${arg_DEPS})
  endif()
endfunction()
