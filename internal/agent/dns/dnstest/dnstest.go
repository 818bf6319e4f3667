// Package dnstest is a name server for tests.
package dnstest

import (
	"net"
	"net/netip"
)

// Start starts a name server that knows one host, by its IPv4 address. It
// returns where it listens, and how to end it.
func Start(host, ip string) (address string, stop func(), err error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(answer(buffer[:n], host, ip), from)
		}
	}()
	return conn.LocalAddr().String(), func() {
		_ = conn.Close()
		<-done
	}, nil
}

// answer is a name server's: the query's header and question, and an address if
// one is asked for.
func answer(query []byte, host, ip string) []byte {
	const header = 12
	if len(query) < header {
		return nil
	}
	at, name := header, ""
	for at < len(query) && query[at] != 0 {
		length := int(query[at])
		name += string(query[at+1:at+1+length]) + "."
		at += 1 + length
	}
	kind := query[at+2]
	text := append([]byte{}, query[:at+5]...)
	copy(text[2:header], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	switch {
	case name != host+".":
		text[3] |= 3 // no such name
	case kind == 1: // an IPv4 address
		text[7] = 1
		text = append(text, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		text = append(text, netip.MustParseAddr(ip).AsSlice()...)
	}
	return text
}
