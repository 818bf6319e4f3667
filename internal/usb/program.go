package usb

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Programs are the agents that can be brought along.
type Programs struct {
	File string // this one; empty: the one that fits, out of Dir
	Dir  string // where this program lies; empty: nowhere
}

// NoProgramError is returned where no agent fits a device.
type NoProgramError struct{ text string }

// Error implements error.
func (e *NoProgramError) Error() string { return e.text }

// kind is a processor in the words of Android, Go and the program's file.
type kind struct {
	abi, arch string
	machine   elf.Machine
}

func kinds() []kind {
	return []kind{{"arm64-v8a", "arm64", elf.EM_AARCH64}, {"x86_64", "amd64", elf.EM_X86_64},
		{"armeabi-v7a", "arm", elf.EM_ARM}, {"x86", "386", elf.EM_386}}
}

// Open opens the agent for a device's processor (ro.product.cpu.abi).
func (p Programs) Open(abi string) (*os.File, error) {
	for _, k := range kinds() {
		if k.abi == abi {
			return p.find(k)
		}
	}
	return nil, &NoProgramError{fmt.Sprintf("there is no agent for its processor %q", abi)}
}

func (p Programs) find(k kind) (*os.File, error) {
	if p.File != "" {
		return fitting(p.File, k)
	}
	names := []string{"muster-agent-" + k.arch, "muster-agent-linux-" + k.arch, "devices/muster-agent-linux-" + k.arch}
	for _, name := range names {
		if p.Dir == "" {
			break
		}
		file, err := fitting(filepath.Join(p.Dir, name), k)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return nil, &NoProgramError{fmt.Sprintf("there is no agent in its system, and none for its processor to bring along: give one with "+
		"--agent, or put %s beside muster", names[0])}
}

// fitting opens a program and makes sure that it is for the processor.
func fitting(path string, k kind) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	program, err := elf.NewFile(file)
	switch {
	case err != nil:
		err = fmt.Errorf("%s is not a program for Android or Linux", path)
	case program.Machine != k.machine:
		err = fmt.Errorf("%s is a program for %v, and the device's processor is %s", path, program.Machine, k.abi)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
