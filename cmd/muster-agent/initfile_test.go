package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestInitFile_StartsTheAgentWithKnownFlags(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/aosp.md")
	if err != nil {
		t.Fatal(err)
	}
	services := regexp.MustCompile(`(?m)^service \S+ /system/bin/muster-agent (.*)$`).FindAllStringSubmatch(string(page), -1)
	if len(services) != 2 {
		t.Errorf("docs/aosp.md has %d services, want 2", len(services))
	}
	for _, service := range services {
		if _, err := kong.Must(&program{}).Parse(strings.Fields(service[1])); err != nil {
			t.Errorf("muster-agent %s: %v", service[1], err)
		}
	}
}
