//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// flock locks an open file for as long as it, or a copy in a child, is open.
func flock(file *os.File) (free bool, err error) {
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// onWake calls hint whenever another process has left an order.
func onWake(hint func()) (stop func()) {
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGUSR1)
	go func() {
		for range woken {
			hint()
		}
	}()
	return func() {
		signal.Stop(woken)
		close(woken)
	}
}

func wake(pid int) error { return syscall.Kill(pid, syscall.SIGUSR1) }
