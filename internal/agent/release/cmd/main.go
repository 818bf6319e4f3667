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
)

const usage = `usage:
  signagent key FILE                                  makes a key and prints its public half
  signagent public FILE                               prints the public half
  signagent sign FILE PACKAGE VERSION CODE IN OUT     signs a program`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cmd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "key":
		return makeKey(args[1])
	case len(args) == 2 && args[0] == "public":
		key, err := readKey(args[1])
		if err == nil {
			fmt.Println(release.KeyText(key.Public().(ed25519.PublicKey)))
		}
		return err
	case len(args) == 7 && args[0] == "sign":
		return sign(args[1], args[2], args[3], args[4], args[5], args[6])
	}
	return errors.New(usage)
}

const kind = "PRIVATE KEY"

func makeKey(path string) error {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(pem.Encode(file, &pem.Block{Type: kind, Bytes: der}), file.Sync(), file.Close()); err != nil {
		return err
	}
	fmt.Println(release.KeyText(public))
	return nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is no PEM file", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(ed25519.PrivateKey); err == nil && ok {
		return key, nil
	}
	return nil, fmt.Errorf("%s holds no Ed25519 key", path)
}

func sign(keyFile, system, version, code, in, out string) error {
	key, err := readKey(keyFile)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(code, 10, 64)
	if err != nil || number <= 0 {
		return fmt.Errorf("the code %q is no positive number", code)
	}
	program, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	signed, err := release.Sign(program, release.Statement{Package: system, Version: version, Code: number}, key)
	if err != nil {
		return err
	}
	return os.WriteFile(out, signed, 0o755)
}
