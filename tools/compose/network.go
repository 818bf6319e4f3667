package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// network gives each name a network with the next address of a subnet, and a line in
// /etc/hosts. The first address is this machine's.
func (p proof) network(names []string, subnet string) error {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return err
	}
	address := prefix.Addr().Next()
	bits := "/" + strconv.Itoa(prefix.Bits())
	script, hosts := "set -e\nip link add proof type bridge\nip link set proof up\nip addr add "+address.String()+bits+" dev proof\n",
		"127.0.0.1 localhost\n"
	for _, name := range names {
		address = address.Next()
		hosts += address.String() + " " + name + "\n"
		script += fmt.Sprintf("ip netns add %[1]s\nip link add v-%[1]s type veth peer name eth0 netns %[1]s\nip link set v-%[1]s "+
			"master proof up\n"+
			"ip -n %[1]s link set lo up\nip -n %[1]s link set eth0 up\nip -n %[1]s addr add %[2]s dev eth0\n", name, address.String()+bits)
	}
	if output, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make the network: %w: %s", err, output)
	}
	file := filepath.Join(p.dir, "hosts")
	if err := os.WriteFile(file, []byte(hosts), 0o644); err != nil { //nolint:gosec // every user reads it
		return err
	}
	return syscall.Mount(file, "/etc/hosts", "", syscall.MS_BIND, "")
}
