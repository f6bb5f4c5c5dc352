module bash_plugin

go 1.19
