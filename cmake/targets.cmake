# pay_library(NAME SOURCES a.c ... HEADERS a.h ... [USES pay_x ...] [LINKS PkgConfig::X ...])
# A static library of this folder. Every public header is also compiled alone (target all_verify_interface_header_sets).
function(pay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;USES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(${name} PUBLIC pay_flags ${ARG_USES} PRIVATE ${ARG_LINKS})
endfunction()

# Under a sanitizer a test takes several times as long: CTest's limit for it, and the waits in Python (PAY_TEST_TIME_SCALE).
set(pay_time_scale 1)
if(PAY_SANITIZE)
  set(pay_time_scale 4)
endif()

# pay_time_limit(NAME SECONDS [DEFAULT]): DEFAULT is for SECONDS that a caller may have left empty.
function(pay_time_limit name seconds)
  math(EXPR seconds "${pay_time_scale} * ${seconds}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
endfunction()

# pay_test(NAME SOURCES test_x.c ... [USES pay_x ...] LABELS unit [TIMEOUT seconds] [ARGS ...])
# A cmocka program; sources are relative to the repository. PAY_TEST_DATA is the absolute path of tests/.
function(pay_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;USES;LABELS;ARGS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  string(REPLACE "." "_" target "test_${name}")
  list(TRANSFORM ARG_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
  add_executable(${target} ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${target} PRIVATE PAY_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE ${ARG_USES} PkgConfig::CMOCKA)
  add_test(NAME ${name} COMMAND ${target} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  pay_time_limit(${name} ${ARG_TIMEOUT} 60)
endfunction()
