package main

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const file = "../../packaging/compose.yaml"

// The compose file keeps to the schema of compose, and its two replicas are the same but for
// their names, which the Caddyfile knows.
func TestComposeFile(t *testing.T) {
	t.Setenv("MUSTER_HOST", "muster.example.com")
	project, err := load(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	names := project.ServiceNames()
	slices.Sort(names)
	if want := []string{"caddy", "muster1", "muster2", "postgres"}; !slices.Equal(names, want) {
		t.Errorf("the services are %v, want %v", names, want)
	}
	one, two := project.Services["muster1"], project.Services["muster2"]
	one.Name, two.Name = "", ""
	if !reflect.DeepEqual(one, two) {
		t.Errorf("the replicas differ: %+v and %+v", one, two)
	}
	if url := one.Environment["MUSTER_PUBLIC_URL"]; url == nil || *url != "https://muster.example.com" {
		t.Errorf("the public URL is %v", url)
	}
	if !one.ReadOnly || !slices.Contains(one.CapDrop, "ALL") || !slices.Contains(one.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("a replica may do more than it needs: %+v", one)
	}
	for _, secret := range one.Secrets {
		if setting := map[string]string{"database": "MUSTER_DATABASE_FILE",
			"keys": "MUSTER_KEY_FILE"}[secret.Source]; *one.Environment[setting] != secret.Target {
			t.Errorf("the secret %s is at %s, and %s is %s", secret.Source, secret.Target, setting, *one.Environment[setting])
		}
	}
	caddy, err := os.ReadFile("../../packaging/Caddyfile")
	if err != nil || !strings.Contains(string(caddy), "{$MUSTER_REPLICAS:muster1:8080 muster2:8080}") {
		t.Errorf("the Caddyfile does not name the replicas (%v): %s", err, caddy)
	}
}

func TestComposeFile_WantsAHost(t *testing.T) {
	t.Setenv("MUSTER_HOST", "")
	if _, err := load(t.Context(), file); err == nil || !strings.Contains(err.Error(), "the host name of the service") {
		t.Errorf("without a host name: %v", err)
	}
}
