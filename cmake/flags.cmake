# One interface target carries flags; nothing sets global flags.
add_library(pay_flags INTERFACE)
target_include_directories(pay_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(pay_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE
  PAY_VERSION="${PROJECT_VERSION}" PAY_FAULTS=$<BOOL:${PAY_FAULTS}>)
target_compile_options(pay_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wformat=2 -Wvla -Wcast-qual -Wwrite-strings
  -fstack-protector-strong -fPIE
  $<$<BOOL:${PAY_WERROR}>:-Werror>
  $<$<C_COMPILER_ID:GNU>:-Wduplicated-cond;-Wlogical-op;-Wimplicit-fallthrough=5>
  $<$<CONFIG:RelWithDebInfo>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
target_link_options(pay_flags INTERFACE -pie -Wl,-z,relro,-z,now)
if(PAY_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PAY_FUZZ needs clang: CC=clang cmake --preset fuzz")
  endif()
  target_compile_options(pay_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(PAY_SANITIZE)
  target_compile_options(pay_flags INTERFACE -fsanitize=${PAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(pay_flags INTERFACE -fsanitize=${PAY_SANITIZE})
endif()
# librdkafka's threads as ThreadSanitizer can follow them.
add_library(pay_tsan_threads SHARED EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/tsan_threads.c)
target_compile_definitions(pay_tsan_threads PRIVATE _DEFAULT_SOURCE)
if(PAY_SANITIZE MATCHES "thread")
  target_compile_options(pay_tsan_threads PRIVATE -fsanitize=thread)
  target_link_options(pay_tsan_threads PRIVATE -fsanitize=thread)
  target_link_libraries(pay_flags INTERFACE -Wl,--no-as-needed $<TARGET_FILE:pay_tsan_threads> -Wl,--as-needed)
  target_link_options(pay_flags INTERFACE -Wl,-rpath,${PROJECT_BINARY_DIR})
  set_target_properties(pay_tsan_threads PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endif()
