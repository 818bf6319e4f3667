package needs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Numbers of Linux system calls, which are the same on all of Go's architectures
// except Alpha and MIPS; package syscall is older than these calls.
const (
	pidfdOpen  = 434
	pidfdGetfd = 438
)

// goStderr opens the standard error of the go command that runs this test.
func goStderr() (*os.File, error) {
	if !parentIsGo() {
		return nil, errors.New("the go command does not run this test")
	}
	if f, err := duplicate(os.Getppid(), 2); err == nil {
		return f, nil
	}
	return reopen(os.Getppid(), 2)
}

// duplicate shares another process's open file, its position included. The kernel
// allows it to root, and to the same user on some distributions.
func duplicate(process, number int) (*os.File, error) {
	handle, _, failed := syscall.Syscall(pidfdOpen, uintptr(process), 0, 0)
	if failed != 0 {
		return nil, failed
	}
	defer func() { _ = syscall.Close(int(handle)) }()
	copied, _, failed := syscall.Syscall(pidfdGetfd, handle, uintptr(number), 0)
	if failed != 0 {
		return nil, failed
	}
	return os.NewFile(copied, "stderr"), nil
}

// reopen opens a terminal or a pipe, or a file that is appended to: in another file,
// what the go command writes next would overwrite our text.
func reopen(process, number int) (*os.File, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", process, number)
	about, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	flags, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", process, number))
	if err != nil {
		return nil, err
	}
	if about.Mode().IsRegular() && !appends(string(flags)) {
		return nil, errors.New("a file that is not appended to")
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

// appends reads the flags of /proc/PID/fdinfo/N, which are octal.
func appends(text string) bool {
	for line := range strings.Lines(text) {
		var flags int
		if n, _ := fmt.Sscanf(line, "flags: %o", &flags); n == 1 {
			return flags&os.O_APPEND != 0
		}
	}
	return false
}

// parentIsGo is true if the go command runs this test.
func parentIsGo() bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	return err == nil && filepath.Base(program) == "go"
}
