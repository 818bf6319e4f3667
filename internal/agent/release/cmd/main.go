// Command cmd makes keys for releases of the agent and signs programs with them.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/musterhq/muster/internal/agent/release"
	"github.com/musterhq/muster/internal/script"
)

const usage = `usage:
  signagent key FILE                                  makes a key and prints its public half
  signagent public FILE                               prints the public half
  signagent sign FILE PACKAGE VERSION CODE IN OUT     signs a program`

func main() {
	if err := script.Attempt(func() { run(os.Args[1:]) }); err != nil {
		fmt.Fprintln(os.Stderr, "cmd:", err)
		os.Exit(1)
	}
}

func run(args []string) {
	switch {
	case len(args) == 2 && args[0] == "key":
		makeKey(args[1])
	case len(args) == 2 && args[0] == "public":
		fmt.Println(release.KeyText(script.Must(readKey(args[1])).Public().(ed25519.PublicKey)))
	case len(args) == 7 && args[0] == "sign":
		sign(args[1], args[2], args[3], args[4], args[5], args[6])
	default:
		script.Fail(usage)
	}
}

const kind = "PRIVATE KEY"

func makeKey(path string) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	script.Need(err)
	der := script.Must(x509.MarshalPKCS8PrivateKey(key))
	file := script.Must(os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600))
	script.Need(errors.Join(pem.Encode(file, &pem.Block{Type: kind, Bytes: der}), file.Sync(), file.Close()))
	fmt.Println(release.KeyText(public))
}

func readKey(path string) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(script.Must(os.ReadFile(path)))
	if block == nil {
		return nil, fmt.Errorf("%s is no PEM file", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(ed25519.PrivateKey); err == nil && ok {
		return key, nil
	}
	return nil, fmt.Errorf("%s holds no Ed25519 key", path)
}

func sign(keyFile, system, version, code, in, out string) {
	key := script.Must(readKey(keyFile))
	number, err := strconv.ParseInt(code, 10, 64)
	if err != nil || number <= 0 {
		script.Fail("the code %q is no positive number", code)
	}
	program := script.Must(os.ReadFile(in))
	signed := script.Must(release.Sign(program, release.Statement{Package: system, Version: version, Code: number}, key))
	script.Need(os.WriteFile(out, signed, 0o755))
}
