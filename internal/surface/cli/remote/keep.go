package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/musterhq/muster/internal/durable"
)

// login is what stays on the computer of a login.
type login struct {
	URL string `json:"url"`
	Key string `json:"key"`
	// Made: muster login made the key, so muster logout revokes it.
	Made    bool      `json:"made"`
	Expires time.Time `json:"expiresAt,omitzero"`
}

// folder is where the command line keeps its files, below the user's settings.
func folder(configDir string) (string, error) {
	if configDir == "" {
		return "", errors.New("the user has no folder for settings: set HOME, or XDG_CONFIG_HOME")
	}
	return filepath.Join(configDir, "muster"), nil
}

func loginPath(configDir string) (string, error) {
	dir, err := folder(configDir)
	return filepath.Join(dir, "login.json"), err
}

// readLogin reads what login kept; false: nothing.
func readLogin(configDir string) (kept login, found bool, err error) {
	path, err := loginPath(configDir)
	if err != nil {
		return login{}, false, nil //nolint:nilerr // where nothing can be kept, nothing is
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return login{}, false, nil
	}
	if err != nil {
		return login{}, false, err
	}
	if !info.Mode().IsRegular() {
		return login{}, false, fmt.Errorf("%s must be a file, not a link to one: remove it and log in again", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return login{}, false, fmt.Errorf("others may read %s, which holds an API key: run muster logout, then log in again", path)
	}
	return parseLogin(path)
}

func parseLogin(path string) (kept login, found bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return login{}, false, err
	}
	if err := json.Unmarshal(text, &kept); err != nil || kept.URL == "" || kept.Key == "" {
		return login{}, false, fmt.Errorf("%s is damaged: remove it and log in again", path)
	}
	return kept, true, nil
}

// writeLogin keeps a login: whole or not at all, readable by the user alone. A link in the
// file's place is replaced, never followed.
func writeLogin(configDir string, l login) error {
	path, err := loginPath(configDir)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "login-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return durable.Sync(filepath.Dir(path))
}
