package shell_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/agent/shell"
)

// What tools write is hostile as far as the parsers are concerned: whatever it
// is, a parser ends, and what it returns is what it says.

func FuzzProperties(f *testing.F) {
	f.Add("[ro.a]: [b]\n[ro.c]: [two\nlines]\n[x]: []\n")
	f.Add("[a]: [b]]: [c]\n[")
	f.Fuzz(func(t *testing.T, text string) {
		for name := range shell.ParseProperties(text) {
			if strings.ContainsAny(name, "\n[]") || !strings.Contains(text, "["+name+"]: [") {
				t.Errorf("%q is no name in %q", name, text)
			}
		}
	})
}

func FuzzRestrictions(f *testing.F) {
	f.Add("Users:\n  UserInfo{0:Owner:c13}\n    Effective restrictions:\n      no_camera\n      none\n  UserInfo{10:x:4}\n    Effective " +
		"restrictions:\n      no_sms\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := shell.ParseRestrictions(text)
		if err != nil && len(found) > 0 {
			t.Error("an error with restrictions")
		}
		for key := range found {
			if !strings.Contains(text, key) || strings.ContainsAny(key, " \n/") {
				t.Errorf("%q was not in the text", key)
			}
		}
	})
}

func FuzzLocation(f *testing.F) {
	f.Add("Location[gps 1.0,2.0 acc=1 et=+99999d99h99m99s999ms]\nLocation[gps 1.0,2.0 acc=1 et=+]")
	f.Add("last location=Location[fused 52.516300,13.377700 hAcc=12.0 et=+1d2h]\nLocation[gps -91.0,0.0 acc=1]")
	f.Fuzz(func(t *testing.T, text string) {
		fix := shell.ParseLocation(text, time.UnixMilli(0))
		if fix == nil {
			return
		}
		if math.Abs(fix.Latitude) > 90 || math.IsNaN(fix.Latitude) || math.Abs(fix.Longitude) > 180 || fix.AccuracyMeters < 0 {
			t.Errorf("%+v is no place", fix)
		}
		if !fix.Stale || fix.At < 0 {
			t.Errorf("%+v is not a last known place: stale %v, at %d", fix, fix.Stale, fix.At)
		}
	})
}

func FuzzPackages(f *testing.F) {
	f.Add("package:com.example.app versionCode:12\npackage:/data/app=bad\n", "com.example.app")
	f.Add("priority=0\ncom.example.app/.Main$Inner\n", "com.example.app")
	f.Fuzz(func(t *testing.T, text, name string) {
		for _, found := range shell.ParsePackages(text) {
			if strings.HasPrefix(found.Package, "-") || strings.ContainsAny(found.Package, " /;$\n") {
				t.Errorf("%q is no package", found.Package)
			}
		}
		if component, ok := shell.ParseComponent(text, name); ok && (!strings.HasPrefix(component, name+"/") ||
			strings.ContainsAny(component, " ;\n")) {
			t.Errorf("%q is no component of %q", component, name)
		}
	})
}

func FuzzNumbers(f *testing.F) {
	f.Add("  level: 80\n  scale: 100\n")
	f.Add("Physical size: 1080x2400\nOverride size: 720x1600\n")
	f.Add("Physical density: 480\n")
	f.Add("MemTotal:  123 kB\nMemAvailable: 9223372036854775807 kB\n")
	f.Add("/dev/block/dm-8 62914560 1048576 61865984 2% /data\n")
	f.Add("41500\n")
	f.Add("97446.50 180000.00\n")
	f.Fuzz(func(t *testing.T, text string) {
		if level, ok := shell.ParseBattery(text); ok && (level < 0 || level > 100) {
			t.Errorf("battery %d", level)
		}
		if w, h, ok := shell.ParseSize(text); ok && (w <= 0 || h <= 0) {
			t.Errorf("size %dx%d", w, h)
		}
		if d, ok := shell.ParseDensity(text); ok && d <= 0 {
			t.Errorf("density %d", d)
		}
		if all, free, ok := shell.ParseDisk(text); ok && (free < 0 || free > all) {
			t.Errorf("disk %d of %d", free, all)
		}
		if up, err := shell.ParseUptime(text); err == nil && up < 0 {
			t.Errorf("the machine started in %s", up)
		}
		if degrees, ok := shell.ParseDegrees(text); ok && (degrees < -100 || degrees > 200) {
			t.Errorf("%f degrees", degrees)
		}
		for name, n := range shell.ParseMemory(text) {
			if n < 0 {
				t.Errorf("%s is %d", name, n)
			}
		}
	})
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb\x00\xff" + strings.Repeat("ü", 300))
	f.Fuzz(func(t *testing.T, text string) {
		if line := shell.OneLine(text); len(line) > 210 || strings.ContainsAny(line, "\n\r") || !utf8.ValidString(line) {
			t.Errorf("%q", line)
		}
	})
}
