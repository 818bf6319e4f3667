package mail_test

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// taken is a mail that the server took.
type taken struct{ from, to, text string }

// server is an SMTP server on loopback, which answers as RFC 5321 has it, or as a test says.
type server struct {
	listener net.Listener
	cert     *tls.Config
	address  string

	mu       sync.Mutex
	mails    []taken
	answers  map[string]string // by a command's first word, or a recipient: the answer
	stall    string            // the command that is never answered
	starttls bool
	implicit bool
	encrypt  int // conversations that were encrypted
	talks    int
	password string
}

func newServer(t *testing.T, change ...func(*server)) *server {
	t.Helper()
	lend := httptest.NewUnstartedServer(http.NotFoundHandler()) // its certificate is for example.com
	lend.StartTLS()
	t.Cleanup(lend.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: listener, cert: lend.TLS, address: listener.Addr().String(), answers: map[string]string{}}
	for _, c := range change {
		c(s)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			running.Go(func() { s.talk(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close() })
	return s
}

func (s *server) answer(line string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	word, _, _ := strings.Cut(line, " ")
	for _, key := range []string{line, strings.ToUpper(word)} {
		if text := s.answers[key]; text != "" {
			return text
		}
	}
	return ""
}

func (s *server) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	encrypted := s.implicit
	if s.implicit {
		conn = tls.Server(conn, s.cert)
	}
	s.mu.Lock()
	s.talks++
	s.mu.Unlock()
	in := bufio.NewReader(conn)
	say := func(text string) { _, _ = conn.Write([]byte(text + "\r\n")) }
	say("220 mail.test ESMTP")
	var m taken
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		word := strings.ToUpper(strings.Fields(line + " .")[0])
		if word == s.stall {
			_, _ = in.ReadByte() // until the client goes
			return
		}
		if text := s.answer(line); text != "" {
			say(text)
			if strings.HasPrefix(text, "421") {
				return
			}
			continue
		}
		switch word {
		case "EHLO":
			text := "250-mail.test\r\n250-8BITMIME"
			if s.starttls && !encrypted {
				text += "\r\n250-STARTTLS"
			}
			say(text + "\r\n250 AUTH PLAIN")
		case "STARTTLS":
			say("220 go ahead")
			conn, encrypted = tls.Server(conn, s.cert), true
			in = bufio.NewReader(conn)
			s.mu.Lock()
			s.encrypt++
			s.mu.Unlock()
		case "AUTH":
			s.mu.Lock()
			s.password = line
			s.mu.Unlock()
			say("235 welcome")
		case "MAIL":
			m = taken{from: line}
			say("250 ok")
		case "RSET":
			say("250 ok")
		case "RCPT":
			m.to = line
			say("250 ok")
		case "DATA":
			say("354 go on")
			for {
				text, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if text == ".\r\n" {
					break
				}
				m.text += text
			}
			s.mu.Lock()
			s.mails = append(s.mails, m)
			s.mu.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// secrets are how many conversations were encrypted, and what the last signed in with.
func (s *server) secrets() (encrypted int, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.encrypt, s.password
}

func (s *server) all() []taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]taken{}, s.mails...)
}
