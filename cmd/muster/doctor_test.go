package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/config"
)

// variables are those of a struct's fields, also of fields that others hide.
func variables(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		if field.Type.Kind() == reflect.Struct {
			names = append(names, variables(field.Type)...)
		} else if name := field.Tag.Get("env"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// No setting that a command reads is called unknown.
func TestDoctor_KnowsAllSettings(t *testing.T) {
	t.Parallel()
	serve := variables(reflect.TypeFor[config.Service]())
	if !slices.Contains(serve, "MUSTER_WEBHOOK_NETWORKS") || !slices.Contains(serve, "MUSTER_DATABASE") {
		t.Fatalf("the settings of muster serve: %v", serve)
	}
	names := append(serve, "MUSTER_DATABASE_FILE", "MUSTER_SMTP_URL_FILE")
	for _, name := range append(names, slices.Collect(maps.Keys(settings(t)))...) {
		for _, f := range unknownSettings([]string{"HOME=/", name + "=x"}) {
			t.Errorf("%s: %s", name, f.Detail)
		}
	}
	unknown := unknownSettings([]string{"MUSTER_LISTEN=x", "MUSTER_DATABSE=x", "MUSTER_LISTEN_FILE=x"})
	if len(unknown) != 2 || !strings.HasPrefix(unknown[0].Detail, "MUSTER_DATABSE ") {
		t.Errorf("unknown: %+v", unknown)
	}
}
