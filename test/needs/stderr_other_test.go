//go:build !linux

package needs_test

import (
	"errors"
	"os"
)

// goStderr finds no way to the go command's standard error: go test -v shows the report.
func goStderr() (*os.File, error) {
	return nil, errors.New("only Linux shows another process's open files")
}
