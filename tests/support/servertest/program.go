package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// Program returns the path of a program of the module, such as cmd/promlake. It is the one that
// make has built into the directory PROMLAKE_PROGRAMS. Without that, it is built into dir, linked
// as by make: what the kernel maps of a program counts as resident.
func Program(name, dir string) (string, error) {
	if built := os.Getenv("PROMLAKE_PROGRAMS"); built != "" {
		program := filepath.Join(built, path.Base(name))
		_, err := os.Stat(program) // so that go test repeats the tests of another program
		return program, err
	}
	program := filepath.Join(dir, path.Base(name))
	flags := "-ldflags=-s -w -extldflags=-Wl,-Ttext-segment=0x410000"
	out, err := exec.Command("go", "build", "-buildvcs=false", flags, "-o", program, "github.com/promlake/promlake/"+name).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return program, err
}
