package platform

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/resource"
)

// The vendor's policy id is our short id, so that either side's name follows
// from the other's.

// policyName is the vendor's name of a policy of ours.
func policyName(enterprise, id string) string { return enterprise + "/policies/" + id }

// policyID is our id of the vendor's policy; empty if it is none of ours. The
// vendor may name a policy in full or by its id alone.
func policyID(enterprise, vendorName string) string {
	id := strings.TrimPrefix(vendorName, enterprise+"/policies/")
	if !resource.IsID(id) {
		return ""
	}
	return id
}

// enterpriseOf is the enterprise that a name of the vendor lies in: its first
// two segments.
func enterpriseOf(vendorName string) string {
	parts := strings.SplitN(vendorName, "/", 3)
	if len(parts) < 2 || parts[0] != "enterprises" || parts[1] == "" {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

// maxName bounds a name of the vendor, in bytes.
const maxName = 512

// isName reports whether a name can be stored: no database takes every byte.
func isName(vendorName string) bool {
	return len(vendorName) <= maxName && utf8.ValidString(vendorName) &&
		!strings.ContainsFunc(vendorName, func(r rune) bool { return !unicode.IsPrint(r) })
}

// isDevice reports whether a name is a device's.
func isDevice(vendorName string) bool {
	if !isName(vendorName) {
		return false
	}
	parts := strings.Split(vendorName, "/")
	return len(parts) == 4 && parts[0] == "enterprises" && parts[1] != "" && parts[2] == "devices" && parts[3] != ""
}

// instant reads the vendor's time; zero if it is none.
func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
