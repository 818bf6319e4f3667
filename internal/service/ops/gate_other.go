//go:build !linux

package ops

import "net"

// refuseNew does nothing: this system cannot refuse new connections to a listener that stays
// open. One that begins at the moment in which the listener closes is lost.
func refuseNew(*net.TCPListener) error { return nil }
