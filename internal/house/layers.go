package house

import (
	"slices"
	"strings"
)

// layer is a story of the house. Imports point down, and rooms of one level
// do not know each other (leaves excepted, which the compiler keeps in order).
type layer int

const (
	leaf layer = iota + 1
	access
	operation
	noun
	verb
	adapter
	threshold // what surfaces share
	surface
	device     // the agent's half, which must stay small and free of server code
	simulation // simulated devices, clients of the service
	assembly   // puts a whole service together from its parts
	trial      // what tests stand on; may import everything
	command    // programs: wiring
)

// rooms gives each package its layer; a package below a room belongs to it.
var rooms = map[string]layer{
	"internal/fault":              leaf,
	"internal/validate":           leaf,
	"internal/resource":           leaf,
	"internal/agent/protocol":     leaf,
	"internal/apk":                leaf,
	"internal/config":             leaf,
	"internal/outbound":           leaf,
	"internal/text":               leaf,
	"internal/wait":               leaf,
	"internal/usb/adb":            leaf,
	"internal/platform/discovery": leaf,

	"internal/access":    access,
	"internal/operation": operation,

	"internal/company": noun,
	"internal/asset":   noun,
	"internal/policy":  noun,

	"internal/activity": noun,

	"internal/agent/device": noun,

	"internal/command":      verb,
	"internal/proposal":     verb,
	"internal/provisioning": verb,
	"internal/enrollment":   verb,
	"internal/budget":       verb,
	"internal/limit":        verb,
	"internal/usb":          verb,

	"internal/database":    adapter,
	"internal/platform":    adapter,
	"internal/emulator":    adapter,
	"internal/agentserver": adapter,
	"internal/fcm":         adapter,
	"internal/identity":    adapter,
	"internal/passkey":     adapter,

	"internal/surface/edge":   threshold,
	"internal/surface/status": threshold,
	"internal/surface/web":    threshold,

	"internal/surface/rest":     surface,
	"internal/surface/mcp":      surface,
	"internal/surface/oauth":    surface,
	"internal/surface/portal":   surface,
	"internal/surface/agentapi": surface,
	"internal/surface/bridge":   surface,
	"internal/surface/cli":      surface,
	"internal/surface/probe":    surface,

	"internal/service": assembly,

	"docs": trial,

	"internal/agent":              device,
	"internal/fleetsim":           simulation,
	"internal/servertest":         trial,
	"internal/database/pgtest":    trial,
	"internal/database/benchtest": trial,
	"internal/database/firsttest": trial,

	"internal/surface/rest/resttest": trial,
	"internal/usb/adbtest":           trial,

	"internal/house":                  command,
	"internal/platform/discovery/cmd": command,
	"cmd/muster":                      command,
	"cmd/muster-agent":                command,
}

// below lists the layers that each layer may import.
var below = map[layer][]layer{
	leaf:       {leaf},
	access:     {leaf},
	operation:  {leaf, access},
	noun:       {leaf, access, operation},
	verb:       {leaf, access, operation, noun},
	adapter:    {leaf, access, operation, noun, verb},
	threshold:  {leaf, access, operation},
	surface:    {leaf, access, operation, noun, verb, threshold},
	device:     {leaf},
	simulation: {leaf, device, adapter},
	assembly:   {leaf, access, operation, noun, verb, adapter, threshold, surface, device}, // the demo has agents
	trial:      {leaf, access, operation, noun, verb, adapter, threshold, surface, device, simulation, assembly, trial},
	command:    {leaf, access, operation, noun, verb, adapter, threshold, surface, device, simulation, assembly},
}

// String is the layer's name in findings.
func (l layer) String() string {
	return [...]string{
		leaf: "leaf", access: "access", operation: "operation", noun: "noun", verb: "verb", adapter: "adapter",
		threshold: "shared surface", surface: "surface", device: "device half", simulation: "simulation", assembly: "assembly", trial: "test support", command: "command",
	}[l]
}

// room finds the room of a directory: the longest entry that it is or lies in.
func room(dir string) (string, layer) {
	for path := dir; path != ""; {
		if l, ok := rooms[path]; ok {
			return path, l
		}
		cut := strings.LastIndexByte(path, '/')
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return "", 0
}

// mayImport tells whether production code in directory from may import the
// module's package in directory to.
func mayImport(from, to string) bool {
	fromRoom, fromLayer := room(from)
	toRoom, toLayer := room(to)
	return fromRoom == toRoom || slices.Contains(below[fromLayer], toLayer)
}

// within tells whether dir is one of the given directories or lies below one.
func within(dir string, parents ...string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		return dir == parent || strings.HasPrefix(dir, parent+"/")
	})
}
