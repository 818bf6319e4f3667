package shell

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
