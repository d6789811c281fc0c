std = "luajit"
max_line_length = 120
exclude_files = { "build" }
files["spec"] = { std = "+busted" }
files["**/*_spec.lua"] = { std = "+busted" }
files["lua/photon/wait.lua"] = { globals = { "coroutine" } } -- resume and wrap that know of waits
