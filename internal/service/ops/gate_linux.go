package ops

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// withoutSyn is a filter of packets in the kernel's form: it drops those that begin a
// connection, and lets all others pass.
var withoutSyn = [...]unix.SockFilter{ //nolint:gochecknoglobals // never written to
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},                   // the flags of the TCP header
	{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 0, Jf: 1, K: 0x02}, // SYN
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
}

// refuseNew has the kernel ignore new connections to a listener, which stays open for those that
// it has begun. A client tries again after a second, when the listener is closed.
func refuseNew(on *net.TCPListener) error {
	raw, err := on.SyscallConn()
	if err != nil {
		return err
	}
	filter := withoutSyn
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	})
	return errors.Join(err, set)
}
