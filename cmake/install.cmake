# What programs of others link: Hone::hone, one shared library with everything in it, so that nobody needs LLVM, oneDNN or protobuf to build against Hone.
# Included after the libraries. Installed are the library, the headers that api/hone.h includes, the tools, a CMake package and a pkg-config file; all of them
# find each other by where they lie, so a prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(HONE_INCLUDES ${CMAKE_INSTALL_INCLUDEDIR}/hone)

# The objects themselves: of an archive the linker would take only what the library itself calls.
set(objects)
foreach(name onnx_proto tensorboard_proto plan_proto base host formats ir frontend passes plan runtime backends api)
  list(APPEND objects $<TARGET_OBJECTS:hone_${name}>)
endforeach()
add_library(hone SHARED ${objects})
add_library(Hone::hone ALIAS hone)
target_link_libraries(hone PRIVATE hone_api)  # for what is not ours
target_link_options(hone PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/hone.map)
target_compile_features(hone INTERFACE cxx_std_20)
target_include_directories(hone INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${HONE_INCLUDES}>)
set_target_properties(hone PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINKER_LANGUAGE CXX LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/hone.map)

if(HONE_INSTALL)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Hone)
  install(TARGETS hone EXPORT HoneTargets COMPONENT hone)
  install(EXPORT HoneTargets NAMESPACE Hone:: DESTINATION ${package} FILE HoneConfig.cmake COMPONENT hone)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/HoneConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/HoneConfigVersion.cmake DESTINATION ${package} COMPONENT hone)

  string(REGEX REPLACE "[^/]+" ".." HONE_PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/hone.pc.in ${PROJECT_BINARY_DIR}/hone.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/hone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT hone)

  install(CODE "set(source \"${PROJECT_SOURCE_DIR}\")\nset(includes \"${HONE_INCLUDES}\")" COMPONENT hone)
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake COMPONENT hone)
endif()
