# The Python that has tests/requirements.txt. scripts/test makes it and passes it.
set(PAY_PYTHON "" CACHE FILEPATH "Python with tests/requirements.txt; empty: the one scripts/test made, else python3")
if(PAY_PYTHON)
  set(pay_python ${PAY_PYTHON})
else()
  set(pay_cache $ENV{XDG_CACHE_HOME})
  if(NOT pay_cache)
    set(pay_cache $ENV{HOME}/.cache)
  endif()
  # As tests/support/stack/python-env.sh names it.
  file(SHA256 ${PROJECT_SOURCE_DIR}/tests/requirements.txt pay_requirements)
  string(SUBSTRING ${pay_requirements} 0 12 pay_requirements)
  set(pay_python ${pay_cache}/payfact/venv-${pay_requirements}/bin/python3)
  if(NOT EXISTS ${pay_python})
    set(pay_python python3)
  endif()
endif()

# pay_python_test(NAME COMMAND script.py args... LABELS unit [TIMEOUT seconds])
function(pay_python_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  set(tests ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND ${pay_python} ${ARG_COMMAND} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" ENVIRONMENT
    "PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${tests}/psp-simulator:${tests}/support/python;PAY_BUILD_DIR=${CMAKE_BINARY_DIR}")
  pay_time_limit(${name} "${ARG_TIMEOUT}" 120)
endfunction()

# pay_pytest(NAME FILE test_x.py LABELS unit [TIMEOUT seconds]): one suite, one CTest test.
function(pay_pytest name)
  cmake_parse_arguments(ARG "" "FILE;TIMEOUT" "LABELS" ${ARGN})
  pay_python_test(${name} COMMAND -m pytest -q -p no:cacheprovider ${ARG_FILE} LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
endfunction()
