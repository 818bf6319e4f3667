package asset

import "strings"

// Claim is what an asset says of which device it is.
type Claim struct {
	Status Status
	Serial string // as IdentityKey has it
}

// Claim is the asset's.
func (a Asset) Claim() Claim { return Claim{a.Status, IdentityKey(a.Specifications["serialNumber"])} }

// MayBe reports whether a person may say that two assets are one device: one of them was
// never enrolled, or both have the same serial number. Devices report it themselves, so
// it proves nothing.
func (c Claim) MayBe(other Claim) bool {
	return c.Status == Pending || other.Status == Pending || c.Serial != "" && c.Serial == other.Serial
}

// IdentityKey makes serial numbers and brands comparable. What Android reports
// when it may not tell the serial number identifies nothing.
func IdentityKey(s string) string {
	if key := strings.ToLower(strings.TrimSpace(s)); key != "unknown" {
		return key
	}
	return ""
}
