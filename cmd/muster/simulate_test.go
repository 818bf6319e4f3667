package main

import (
	"strings"
	"testing"
)

// Too many agents for the limit of open files are refused before anything starts.
func TestEnoughFiles(t *testing.T) {
	t.Parallel()
	if err := enoughFiles(5000, filesOwn, 20_000); err != nil {
		t.Errorf("5,000 agents with 20,000 files: %v", err)
	}
	err := enoughFiles(10_000, filesOwn, 20_000)
	if err == nil || !strings.Contains(err.Error(), "at most 6466 agents") {
		t.Errorf("10,000 agents with 20,000 files: %v, want a refusal that says how many would do", err)
	}
}
