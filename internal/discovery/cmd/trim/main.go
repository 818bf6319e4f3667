// Command trim writes the discovery documents that lie beside Google's Go
// clients into the present directory, without their prose: names, types and
// paths are all that package discovery reads.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is the release whose documents are taken. It may be newer than the one
// that the programs are built with: the documents need no other module.
const module = "google.golang.org/api@v0.311.0"

// sources are the clients' directories in their module.
var sources = [...]string{"androidmanagement/v1", "fcm/v1", "pubsub/v1"} //nolint:gochecknoglobals // a table that is never written to

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func run() error {
	answer, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return fmt.Errorf("cannot download %s: %w", module, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(answer, &downloaded); err != nil {
		return fmt.Errorf("cannot read what go mod download says of %s: %w", module, err)
	}
	for _, source := range sources {
		file := filepath.Dir(source) + "-api.json"
		text, err := os.ReadFile(filepath.Join(downloaded.Dir, source, file))
		if err != nil {
			return err
		}
		if text, err = trim(text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func trim(text []byte) ([]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(described(document), "", " ")
	return append(out, '\n'), err
}

// described keeps of a description what is read of it.
func described(from map[string]any) map[string]any {
	to := map[string]any{}
	for key, value := range from {
		switch key {
		case "schemas", "properties", "resources", "methods", "parameters":
			to[key] = named(value)
		case "items", "additionalProperties", "request", "response":
			if inner, ok := value.(map[string]any); ok {
				to[key] = described(inner)
			}
		case "name", "version", "revision", "id", "type", "format", "$ref", "enum", "readOnly", "deprecated",
			"httpMethod", "path", "flatPath", "scopes", "location", "pattern", "required", "repeated":
			to[key] = value
		}
	}
	return to
}

// named keeps every name, and of what it names what is read.
func named(value any) map[string]any {
	to := map[string]any{}
	all, _ := value.(map[string]any)
	for name, one := range all {
		inner, _ := one.(map[string]any)
		to[name] = described(inner)
	}
	return to
}
