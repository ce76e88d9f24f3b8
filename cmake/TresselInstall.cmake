# What `cmake --install` puts where, and how another project finds it: find_package(Tressel) or pkg-config.
#   Tressel::runtime   libtressel_runtime.so, enough to open and run packages from C and C++; it finds
#                      libtressel_kernels.so beside itself for packages with built-in kernels, libtressel_devices.so for those over
#                      several devices, libtressel_cuda.so for those on GPUs, libtressel_communicators.so for collectives between
#                      ranks, and libtressel_states.so for files of states
#   Tressel::tressel   libtressel.so, all of the C++ API, the compiler included
include(CMakePackageConfigHelpers)

# The archives of the folders as one library that shows nothing but the project's own names.
set(exports ${CMAKE_CURRENT_LIST_DIR}/tressel.exports)
set(whole tressel_frontend tressel_frontend_base tressel_files tressel_host tressel_onnx_api)
add_library(tressel_all SHARED)
foreach(archive ${whole})
  target_sources(tressel_all PRIVATE $<TARGET_OBJECTS:${archive}>)
endforeach()
set_target_properties(tressel_all PROPERTIES OUTPUT_NAME tressel EXPORT_NAME tressel LINK_DEPENDS ${exports}
                      LINKER_LANGUAGE CXX)
target_link_libraries(tressel_all PUBLIC tressel_runtime tressel_devices PRIVATE ${whole})
# Calls within the library go straight to their function: an imperative op makes a few dozen of them.
target_link_options(tressel_all PRIVATE -Wl,--version-script=${exports} -Wl,-Bsymbolic-functions -Wl,-z,nodelete)
target_include_directories(tressel_all INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/frontend/include>
                           $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/frontend/include>)

set_target_properties(tressel_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(tressel_kernels PROPERTIES EXPORT_NAME kernels)
set_target_properties(tressel_devices PROPERTIES EXPORT_NAME devices)
set_target_properties(tressel_cuda_machine PROPERTIES EXPORT_NAME cuda)
set_target_properties(tressel_communicators PROPERTIES EXPORT_NAME communicators)
set_target_properties(tressel_states PROPERTIES EXPORT_NAME states)
foreach(library tressel_runtime tressel_kernels tressel_devices tressel_cuda_machine tressel_communicators tressel_states tressel_all)
  set_target_properties(${library} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
add_library(Tressel::runtime ALIAS tressel_runtime)
add_library(Tressel::tressel ALIAS tressel_all)

install(TARGETS tressel_runtime tressel_kernels tressel_devices tressel_cuda_machine tressel_communicators tressel_states tressel_all EXPORT TresselTargets)
install(TARGETS tressel_compiler tressel) # the program finds the library beside itself
foreach(folder ${CMAKE_SOURCE_DIR}/runtime/include ${CMAKE_SOURCE_DIR}/frontend/include ${CMAKE_BINARY_DIR}/frontend/include)
  install(DIRECTORY ${folder}/tressel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tressel)
install(EXPORT TresselTargets NAMESPACE Tressel:: DESTINATION ${package_dir})
file(WRITE ${CMAKE_BINARY_DIR}/cmake/TresselConfig.cmake [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/TresselTargets.cmake)
]])
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/TresselConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/TresselConfig.cmake ${CMAKE_BINARY_DIR}/cmake/TresselConfigVersion.cmake
        DESTINATION ${package_dir})

# ${pcfiledir} keeps the folder movable.
foreach(name tressel tressel_runtime)
  if(name STREQUAL tressel)
    set(description "Symbolic graph compiler for imperative C++ tensor code")
    set(extra "Requires: tressel_runtime\n")
    set(libraries "-ltressel -ltressel_devices")
  else()
    set(description "Runtime of compiled Tressel packages")
    set(extra "")
    set(libraries "-ltressel_runtime")
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/cmake/${name}.pc
"prefix=\${pcfiledir}/../..
Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
${extra}Cflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
Libs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} ${libraries}
")
  install(FILES ${CMAKE_BINARY_DIR}/cmake/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
