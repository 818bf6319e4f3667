package shell

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// What tools write is text for people, and differs from build to build. Each
// parser takes the lines that it knows and leaves the rest; where nothing is
// known it says so rather than guess.

// parseProperties reads `getprop`: lines "[name]: [value]". A value may go over
// several lines.
func parseProperties(text string) map[string]string {
	all := map[string]string{}
	for text != "" {
		start := strings.IndexByte(text, '[')
		if start < 0 {
			break
		}
		name, rest, ok := strings.Cut(text[start+1:], "]: [")
		if !ok {
			break
		}
		value, after, ok := strings.Cut(rest, "]\n")
		if !ok {
			value, after = strings.TrimSuffix(rest, "]"), ""
		}
		if !strings.ContainsAny(name, "\n[]") {
			all[name] = value
		}
		text = after
	}
	return all
}

var restrictionName = regexp.MustCompile(`^[a-z_]{2,64}$`)

// parseRestrictions reads `dumpsys user`: what is in force for user 0.
func parseRestrictions(text string) (map[string]bool, error) {
	inForce := map[string]bool{}
	inUser, inList, found := false, false, false
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(word, "UserInfo{"):
			inUser, inList = strings.HasPrefix(word, "UserInfo{0:"), false
		case inUser && word == "Effective restrictions:":
			inList, found = true, true
		case inList && word == "none":
		case inList && restrictionName.MatchString(word):
			inForce[word] = true
		default:
			inList = false
		}
	}
	if !found {
		return nil, errors.New("dumpsys user does not tell the restrictions of user 0")
	}
	return inForce, nil
}

// parseSwitch reads a switch by its name: true or false, 1 or 0, location's 3. The 3 of wifi_on
// is Wi-Fi that airplane mode has switched off, and its 2 Wi-Fi that is on in spite of that.
func parseSwitch(name, text string) (bool, error) {
	switch word := strings.TrimSpace(text); word {
	case "true", "1", "2":
		return true, nil
	case "3":
		return name != "wifi_on", nil
	case "false", "0", "null":
		return false, nil
	default:
		return false, fmt.Errorf("a switch reads %.20q", word)
	}
}

// members reads lines "name: value".
func members(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			all[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return all
}

// parseBattery reads the level in percent from `dumpsys battery`.
func parseBattery(text string) (int, bool) {
	values := members(text)
	level, err := strconv.Atoi(values["level"])
	scale, err2 := strconv.Atoi(cmp.Or(values["scale"], "100"))
	if err != nil || err2 != nil || level < 0 || scale <= 0 || level > scale {
		return 0, false
	}
	return int(math.Round(float64(level) * 100 / float64(scale))), true
}

var fixForm = regexp.MustCompile(
	`Location\[(\w+) (-?[0-9]{1,3}\.[0-9]{1,12}),(-?[0-9]{1,3}\.[0-9]{1,12}) (?:hAcc|acc)=([0-9]{1,7}(?:\.[0-9]{1,6})?) et=(\+[0-9dhms]{2,40})`)

// parseLocation reads the newest last known location from `dumpsys location`, of
// equally new ones the most exact. Android reports when it was fixed by the time
// since the machine's start (et); one without that is left out, because it may be
// of any age.
func parseLocation(text string, start time.Time) *protocol.Location {
	var best *protocol.Location
	for _, m := range fixForm.FindAllStringSubmatch(text, 32) {
		latitude, err1 := strconv.ParseFloat(m[2], 64)
		longitude, err2 := strconv.ParseFloat(m[3], 64)
		accuracy, err3 := strconv.ParseFloat(m[4], 64)
		since, ok := parseElapsed(m[5])
		if errors.Join(err1, err2, err3) != nil || !ok || math.Abs(latitude) > 90 || math.Abs(longitude) > 180 {
			continue
		}
		at := start.Add(since).UnixMilli()
		if best == nil || at > best.At || at == best.At && accuracy < best.AccuracyMeters {
			best = &protocol.Location{Latitude: latitude, Longitude: longitude, AccuracyMeters: accuracy, At: at, Stale: true}
		}
	}
	return best
}

var elapsedForm = regexp.MustCompile(`^\+(?:([0-9]{1,5})d)?(?:([0-9]{1,2})h)?(?:([0-9]{1,2})m)?(?:([0-9]{1,2})s)?(?:([0-9]{1,3})ms)?$`)

// parseElapsed reads a duration as Android writes it: +1d2h3m4s5ms.
func parseElapsed(text string) (time.Duration, bool) {
	m := elapsedForm.FindStringSubmatch(text)
	if m == nil || text == "+" {
		return 0, false
	}
	var all time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond} {
		n, _ := strconv.Atoi("0" + m[i+1]) // digits, or none
		all += time.Duration(n) * unit
	}
	return all, true
}

// parseUptime reads /proc/uptime: how long ago the machine started.
func parseUptime(text string) (time.Duration, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		return 0, fmt.Errorf("/proc/uptime reads %.20q", first)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// maxPackages bounds a list of apps.
const maxPackages = 2000

// app is an installed app in a report.
type app struct {
	Package string `json:"packageName"`
	Version *int64 `json:"versionCode,omitempty"`
}

// parsePackages reads `pm list packages --show-versioncode`: "package:com.example
// versionCode:12" in each line. Android before version 8 says the package alone.
func parsePackages(text string) []app {
	found := []app{}
	for line := range strings.Lines(text) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " versionCode:")
		name, ok := strings.CutPrefix(name, "package:")
		if !ok || !packageForm.MatchString(name) || len(found) == maxPackages {
			continue
		}
		a := app{Package: name}
		if code, err := strconv.ParseInt(version, 10, 64); err == nil && code >= 0 {
			a.Version = &code
		}
		found = append(found, a)
	}
	return found
}

// parseSize reads `wm size`: the override if there is one, else the physical size.
func parseSize(text string) (width, height int, ok bool) {
	parsed := members(text)
	w, h, _ := strings.Cut(cmp.Or(parsed["Override size"], parsed["Physical size"]), "x")
	width, err1 := strconv.Atoi(w)
	height, err2 := strconv.Atoi(h)
	return width, height, err1 == nil && err2 == nil && width > 0 && height > 0
}

// parseDensity reads `wm density`, in the same way.
func parseDensity(text string) (int, bool) {
	parsed := members(text)
	density, err := strconv.Atoi(cmp.Or(parsed["Override density"], parsed["Physical density"]))
	return density, err == nil && density > 0
}

// parseMemory reads /proc/meminfo: bytes by name.
func parseMemory(text string) map[string]int64 {
	all := map[string]int64{}
	for name, value := range members(text) {
		kilobytes, ok := strings.CutSuffix(value, " kB")
		if n, err := strconv.ParseInt(kilobytes, 10, 64); ok && err == nil && n >= 0 && n < math.MaxInt64>>10 {
			all[name] = n << 10
		}
	}
	return all
}

// parseDisk reads `df -k /data`: bytes in all and free.
func parseDisk(text string) (total, free int64, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		all, err1 := strconv.ParseInt(fields[1], 10, 64)
		left, err2 := strconv.ParseInt(fields[3], 10, 64)
		if err1 == nil && err2 == nil && all > 0 && left >= 0 && left <= all && all < math.MaxInt64>>10 {
			return all << 10, left << 10, true
		}
	}
	return 0, 0, false
}

var packageForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*$`)

var componentForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*/[A-Za-z0-9_.$]+$`)

// parseComponent reads the component that `cmd package resolve-activity
// --brief` found for a package: its last line.
func parseComponent(text, packageName string) (string, bool) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return last, componentForm.MatchString(last) && strings.HasPrefix(last, packageName+"/")
}

// parseDegrees reads a thermal zone: thousandths of a degree Celsius, or whole
// ones on some kernels.
func parseDegrees(text string) (float64, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case err != nil || n < -100_000 || n > 200_000:
		return 0, false
	case n > 200 || n < -100:
		return float64(n) / 1000, true
	}
	return float64(n), true
}
