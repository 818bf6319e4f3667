package account

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/fault"
)

// MinPassword and MaxPassword limit passwords of portal users, in characters.
const (
	MinPassword = 8
	MaxPassword = 256
)

// commonPasswords are the passwords that attackers try first, one a line, in
// lower case: those of MinPassword characters and more from the list that Django
// ships (docs/dependencies.md says how to renew it).
//
//go:embed passwords.txt
var commonPasswords string

// CheckPassword returns fault.InvalidArguments for a password that cannot be used.
func CheckPassword(password string) error {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword || !utf8.ValidString(password) {
		return fault.Invalid(fmt.Sprintf("the password must have %d to %d characters", MinPassword, MaxPassword),
			fault.Field{Field: "password", Message: fmt.Sprintf("must have %d to %d characters", MinPassword, MaxPassword)})
	}
	if isCommon(password) {
		return fault.Invalid("the password is one of the most common ones: choose another, such as several words in a row",
			fault.Field{Field: "password", Message: "is one of the most common ones; choose another"})
	}
	return nil
}

// isCommon compares without case, as attackers do.
func isCommon(password string) bool {
	password = strings.ToLower(password)
	if strings.ContainsAny(password, "\r\n") {
		return false
	}
	line := password + "\n"
	return strings.HasPrefix(commonPasswords, line) || strings.Contains(commonPasswords, "\n"+line)
}
