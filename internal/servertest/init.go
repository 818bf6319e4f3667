package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// initProcess plays Android's init with the init file of docs/aosp.md: directories
// at the start, services, and what happens when a property is set.
type initProcess struct {
	android  *Android
	services map[string]*initService
	actions  []initAction
	props    map[string]string // as init knows them
	read     int               // of the tools' calls, in bytes
}

type initService struct {
	argv    []string
	user    syscall.Credential
	running *exec.Cmd
	ended   chan struct{}
}

type initAction struct {
	triggers []string // "boot", or "property:NAME=VALUE"
	commands [][]string
}

func userOf(name string) uint32 {
	return map[string]uint32{"system": systemUID, "shell": shellUID, "inet": 3003}[name]
}

// startInit starts it; it ends with the test.
func startInit(a *Android) {
	a.tb.Helper()
	text, err := os.ReadFile("../../docs/aosp.md")
	a.must(err)
	_, rest, found := strings.Cut(string(text), "### Init file\n")
	parts := strings.SplitN(rest, "```", 3)
	if !found || len(parts) < 3 {
		a.tb.Fatal("docs/aosp.md has no init file")
	}
	p := &initProcess{android: a, services: map[string]*initService{}, props: map[string]string{"sys.boot_completed": "1"}}
	p.parse(parts[1])
	p.fire("post-fs-data", "")
	p.fire("boot", "")
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.tb.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			p.watch()
			time.Sleep(5 * time.Millisecond) // the kernel would tell; a file does not
		}
	}()
	a.tb.Cleanup(func() {
		cancel()
		<-done
		for _, s := range p.services {
			p.stop(s)
		}
	})
}

func (p *initProcess) parse(text string) {
	var service *initService
	var action *initAction
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "service":
			service, action = &initService{argv: words[2:], user: syscall.Credential{NoSetGroups: false}}, nil
			p.services[words[1]] = service
		case words[0] == "on":
			p.actions = append(p.actions, initAction{triggers: slices.DeleteFunc(words[1:], func(w string) bool { return w == "&&" })})
			service, action = nil, &p.actions[len(p.actions)-1]
		case service != nil && words[0] == "user":
			service.user.Uid = userOf(words[1])
		case service != nil && words[0] == "group":
			service.user.Gid = userOf(words[1])
			for _, name := range words[2:] {
				service.user.Groups = append(service.user.Groups, userOf(name))
			}
		case action != nil:
			action.commands = append(action.commands, words)
		}
	}
}

// watch reads which properties were set since it last looked.
func (p *initProcess) watch() {
	calls, now, err := p.android.snapshot()
	if err != nil || len(calls) <= p.read {
		return
	}
	fresh := calls[p.read:]
	p.read = len(calls)
	for line := range bytes.Lines(fresh) {
		var argv []string
		if json.Unmarshal(line, &argv) != nil || len(argv) != 3 || filepath.Base(argv[0]) != "setprop" {
			continue
		}
		// Who may not set it has not.
		if strings.HasPrefix(argv[1], "debug.") || now.Platform.Properties[argv[1]] == argv[2] {
			p.set(argv[1], argv[2])
		}
	}
}

func (p *initProcess) set(name, value string) {
	p.props[name] = value
	p.fire("property:"+name, value)
}

// fire does what is to be done at an event.
func (p *initProcess) fire(event, value string) {
	if strings.HasPrefix(event, "property:") {
		event += "=" + value
	}
	for _, a := range p.actions {
		if !slices.Contains(a.triggers, event) || slices.ContainsFunc(a.triggers, func(t string) bool { return !p.holds(t, event) }) {
			continue
		}
		for _, words := range a.commands {
			p.do(words)
		}
	}
}

func (p *initProcess) holds(trigger, event string) bool {
	name, value, _ := strings.Cut(strings.TrimPrefix(trigger, "property:"), "=")
	return trigger == event || p.props[name] == value
}

func (p *initProcess) do(words []string) {
	switch words[0] {
	case "mkdir":
		path := filepath.Join(p.android.Dir, words[1])
		mode, _ := strconv.ParseUint(words[2], 8, 12)
		_ = os.MkdirAll(path, 0o700)
		_ = os.Chown(path, int(userOf(words[3])), int(userOf(words[4])))
		_ = os.Chmod(path, os.FileMode(mode))
	case "setprop":
		_ = p.android.in(context.Background(), &syscall.Credential{}, words...).Run() // comes back by watch
		p.props[words[1]] = words[2]
	case "start":
		p.start(p.services[words[1]])
	case "stop":
		p.stop(p.services[words[1]])
	}
}

func (p *initProcess) start(s *initService) {
	if s.running != nil {
		select {
		case <-s.ended:
		default:
			return // it runs
		}
	}
	s.running, s.ended = p.android.in(context.Background(), &s.user, s.argv...), make(chan struct{})
	log, err := os.OpenFile(filepath.Join(p.android.Dir, "init.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		s.running.Stdout, s.running.Stderr = log, log
		err = s.running.Start()
	}
	running, ended := s.running, s.ended
	go func() {
		defer close(ended)
		if err == nil {
			_ = running.Wait()
			_ = log.Close()
		}
	}()
}

func (p *initProcess) stop(s *initService) {
	if s.running == nil {
		return
	}
	if s.running.Process != nil {
		_ = s.running.Process.Kill() // as init does
	}
	<-s.ended
}

// Log is what the services that init started said.
func (a *Android) Log() string {
	text, _ := os.ReadFile(filepath.Join(a.Dir, "init.log"))
	return string(text)
}

// Properties are the device's, as they were set.
func (a *Android) Properties() map[string]string {
	return maps.Clone(a.State().Platform.Properties)
}
