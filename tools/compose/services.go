package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// alone runs the image with what it says itself, as an engine does without further flags.
func (p proof) alone() error {
	c, err := p.muster("image", types.ServiceConfig{}, nil)
	if err != nil {
		return err
	}
	if err := p.network([]string{"image"}, "172.30.1.0/24"); err != nil {
		return err
	}
	command, err := p.command("image", c)
	if err != nil {
		return err
	}
	return command.Run()
}

// up starts the services in their order, and starts again what ends.
func (p proof) up(ctx context.Context) error {
	project, err := load(ctx, p.file)
	if err != nil {
		return err
	}
	names := project.ServiceNames()
	slices.Sort(names)
	if len(project.Networks) != 1 {
		return errors.New("the proof knows one network")
	}
	for _, n := range project.Networks {
		if err := p.network(names, n.Ipam.Config[0].Subnet); err != nil {
			return err
		}
	}
	for _, name := range slices.Backward(names) { // postgres, muster…, caddy
		service := project.Services[name]
		if err := p.start(name, service, project); err != nil {
			return fmt.Errorf("service %s: %w", name, err)
		}
		if check := service.HealthCheck; check != nil {
			if err := p.healthy(ctx, name, check.Test[1]); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return nil
}

func (p proof) start(name string, service types.ServiceConfig, project *types.Project) error {
	made := p.standIn
	if strings.HasPrefix(name, "muster") {
		made = p.muster
	}
	c, err := made(name, service, project)
	if err != nil {
		return err
	}
	if service.Restart != types.RestartPolicyAlways {
		return errors.New("it is not started again when it ends")
	}
	go func() {
		for {
			command, err := p.command(name, c)
			if err == nil {
				err = command.Run()
			}
			fmt.Fprintf(os.Stderr, "service %s ended: %v\n", name, err)
			time.Sleep(time.Second)
		}
	}()
	return nil
}

// healthy waits until the check of a service succeeds.
func (p proof) healthy(ctx context.Context, name, check string) error {
	var said []byte
	for range 60 {
		command := exec.CommandContext(ctx, "ip", "netns", "exec", name, "sh", "-c", check)
		command.Env = append(os.Environ(), "PGHOST="+name)
		var err error
		if said, err = command.CombinedOutput(); err == nil {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("service %s is not healthy: %s", name, said)
}

// exec runs a command as a service of up has it.
func (p proof) exec(name string, args []string) error {
	text, err := os.ReadFile(filepath.Join(p.dir, name+".json"))
	if err != nil {
		return err
	}
	var c container
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if args[0] == "muster" {
		args[0] = "/usr/bin/muster" // the image's PATH
	}
	c.Args = args
	command, err := p.command(name+"-exec", c)
	if err != nil {
		return err
	}
	command.Args[3] = name // the service's network
	command.Stdin, command.Stdout = os.Stdin, os.Stdout
	return command.Run()
}

// command starts a container in namespaces of its own, with the network of its name.
func (p proof) command(name string, c container) (*exec.Cmd, error) {
	text, err := json.Marshal(c)
	file := filepath.Join(p.dir, name+".json")
	if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command("ip", "netns", "exec", name, self, "inside", file) //nolint:gosec // the proof's own
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig: syscall.SIGKILL}
	return command, nil
}
