# cmake -DOUT=FILE -DROOT=FOLDER -DSOURCES=FILE -DTOOLS=TEXT -P SourceHash.cmake: writes the hash of the files listed in
# SOURCES, one a line, and of TOOLS as a constant of C++.
file(STRINGS ${SOURCES} files)
set(text "${TOOLS}\n")
foreach(path ${files})
  file(SHA256 ${path} hash)
  file(RELATIVE_PATH name ${ROOT} ${path}) # where the tree lies does not matter
  string(APPEND text "${hash} ${name}\n")
endforeach()
string(SHA256 all "${text}")
file(WRITE ${OUT} "constexpr char kSourceHash[] = \"${all}\";\n")
