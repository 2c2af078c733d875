# What an installation has beside the programs, which their own folders install. cmake --install build/release --prefix /usr
include(GNUInstallDirs)
install(DIRECTORY schemas/avro schemas/sql DESTINATION ${CMAKE_INSTALL_DATADIR}/payfact/schemas
  FILES_MATCHING PATTERN "*.avsc" PATTERN "*.sql" PATTERN "README.md")
install(FILES deploy/examples/accounts.json DESTINATION ${CMAKE_INSTALL_DATADIR}/payfact/examples)
install(FILES README.md ARCHITECTURE.md CHANGELOG.md LICENSE SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")
