package main

import (
	"os"

	"MODULE/mytools"
	"MODULE/pkg/tools"
)

func main() {
	REGISTER
	reg.Serve()
}
