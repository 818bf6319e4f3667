package shell

import (
	"fmt"
	"strings"
)

// From these API levels on there are command lines for notifications and apps.
const (
	NotificationSDK = notificationSDK
	LaunchSDK       = launchSDK
)

// The parsers, for fuzzing.
var (
	ParseProperties   = parseProperties
	ParseRestrictions = parseRestrictions
	ParseLocation     = parseLocation
	ParseUptime       = parseUptime
	ParsePackages     = parsePackages
	ParseComponent    = parseComponent
	ParseBattery      = parseBattery
	ParseSize         = parseSize
	ParseDensity      = parseDensity
	ParseMemory       = parseMemory
	ParseDisk         = parseDisk
	ParseDegrees      = parseDegrees
	OneLine           = oneLine
)

// Row is one line of the table of what settings take, for people.
type Row struct {
	Setting string
	SDK     int    // 0: any
	How     string // restrictions and command lines
	Who     string // the least of: agent, lab, system, owner
}

// Table returns the rows in the contract's order.
func Table() []Row {
	var rows []Row
	for _, r := range rules() {
		rows = append(rows, Row{Setting: r.id, SDK: r.sdk, How: r.how(), Who: r.who()})
	}
	return rows
}

func (r rule) who() string {
	switch {
	case r.own:
		return "agent"
	case r.none != "":
		return "none"
	case r.owner:
		return "owner"
	case r.lab:
		return "lab"
	}
	return "system"
}

func (r rule) how() string {
	var parts []string
	switch {
	case r.own:
		return "the agent collects it, or does not"
	case r.none != "":
		return r.none
	case r.owner:
		return "the device-owner app"
	}
	if t := r.toggle; t != nil {
		_, both := t.values["ENABLED"]
		_, mode := t.values["ENFORCED"]
		parts = append(parts, "`"+strings.Join(t.turn.line(both || mode), " ")+"`",
			fmt.Sprintf("below %d: `%s`", t.since, strings.Join(t.before.line(both || mode), " ")))
	}
	for _, k := range r.keys {
		text := "`" + k.name + "`"
		if k.sdk > r.sdk {
			text += fmt.Sprintf(" (%d)", k.sdk)
		}
		parts = append(parts, text)
	}
	for _, s := range r.sets {
		parts = append(parts, "`settings put "+s.table+" "+s.name+" "+s.value+"`")
	}
	if r.check != "" {
		parts = append(parts, "`"+r.check+"`")
	}
	return strings.Join(parts, ", ")
}
