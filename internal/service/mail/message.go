package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/validate"
)

// maxSubject and maxName bound what a header has of names, in characters.
const (
	maxSubject = 150
	maxName    = 100
)

// maxLine is how long a line of a header with encoded words may be, in bytes (RFC 2047).
const maxLine = 76

// message is one mail as plain text. The subject and the name are not trusted: they are
// cleaned of line breaks, and encoded. The key says what it is about: a mail that is sent
// again after a kill has the same key and text, and so the same Message-ID.
func message(from mail.Address, name, to, subject, text, key string, now time.Time) []byte {
	var b bytes.Buffer
	header := func(name, value string) { b.WriteString(name + ": " + value + "\r\n") }
	folded := func(name, value string) { b.WriteString(fold(name+": "+value) + "\r\n") }
	folded("From", from.String())
	folded("To", (&mail.Address{Name: validate.Clean(name, maxName), Address: validate.Clean(to, 320)}).String())
	folded("Subject", mime.QEncoding.Encode("utf-8", validate.Clean(subject, maxSubject)))
	header("Date", now.UTC().Format(time.RFC1123Z))
	_, domain, _ := strings.Cut(from.Address, "@")
	id := sha256.Sum256([]byte(key + "\n" + text))
	header("Message-ID", "<"+hex.EncodeToString(id[:16])+"@"+domain+">")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	header("Auto-Submitted", "auto-generated")
	b.WriteString("\r\n")
	body := quotedprintable.NewWriter(&b)
	_, _ = body.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	_ = body.Close() // a buffer takes everything
	return b.Bytes()
}

// fold breaks a header at spaces into lines of maxLine bytes. A single longer word has a line
// of its own. Readers take the line breaks out again (RFC 5322).
func fold(header string) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(header, " ") {
		switch {
		case i == 0:
		case word != "" && used+1+len(word) > maxLine:
			b.WriteString("\r\n ")
			used = 1
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}
