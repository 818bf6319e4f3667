package logfile

import (
	"regexp"
	"strings"
)

const redacted = "[redacted]"

// What is taken out of a line. The Android app has the same rules (LogFile.java), and both
// are compared with android/test/log.tsv.
var (
	// header is a header with credentials, to the end of the line.
	header = regexp.MustCompile(`(?i)(authorization["' :=]+).*`)
	// member is a secret by its name: name=value, "name": "value", or the same as text in JSON.
	member = regexp.MustCompile(`(?i)((?:password|passphrase|passwd|secret|token|signature|proof|private.?key)s?[\\"']*\s*[:=]\s*|\bkey=)(?:\\"[^\\"]*\\"|"(?:[^"\\]|\\.)*"|[^\s,;&]+)`)
	// user is what an address says of a user.
	user = regexp.MustCompile(`://[^/\s@"]*@`)
	// prefixed are secrets that say what they are.
	prefixed = regexp.MustCompile(`\b((?:met|mct|mk|whsec)_)[A-Za-z0-9_+/=-]+`)
	// word is what may be a key, a token or a digest.
	word = regexp.MustCompile(`[A-Za-z0-9_+=-]{20,}`)
)

// redact takes out what is, or looks like, a secret.
func redact(line string) string {
	line = header.ReplaceAllString(line, "${1}"+redacted)
	line = member.ReplaceAllString(line, "${1}"+redacted)
	line = user.ReplaceAllString(line, "://"+redacted+"@")
	line = prefixed.ReplaceAllString(line, "${1}"+redacted)
	return word.ReplaceAllStringFunc(line, func(w string) string {
		if secret(w) {
			return redacted
		}
		return w
	})
}

// secret reports whether a word of 20 characters or more is more likely a key, a token or
// a digest than a name: it has a digit, and an upper-case letter or 32 characters. Ids have 26
// lower-case letters and digits.
func secret(w string) bool {
	if !strings.ContainsAny(w, "0123456789") {
		return false
	}
	return len(w) >= 32 || w != strings.ToLower(w)
}
