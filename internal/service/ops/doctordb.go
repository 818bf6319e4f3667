package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
)

// database looks at the database and at the keys that belong to it. It changes
// nothing: a database that does not exist is not made, an older one not upgraded.
func (d *doctor) database(ctx context.Context) {
	if d.unusable() || d.locked(ctx) {
		d.diskFree()
		d.keyFile(nil)
		return
	}
	found, err := database.Inspect(ctx, d.settings.Database)
	if err != nil {
		d.note("database", Failed, eachOnce(err), database.Remedy(err))
		d.diskFree()
		d.keyFile(nil)
		return
	}
	d.note("database", Fine, "answers", "")
	d.diskFree()
	d.schema(found.Version)
	d.integrity(ctx, found)
	d.keyFile(&found)
	d.contents(ctx, found)
}

// unusable reports whether this user cannot write to an embedded database.
func (d *doctor) unusable() bool {
	path, embedded := d.settings.SQLitePath()
	if !embedded {
		return false
	}
	err := database.Usable(path)
	refused, _ := errors.AsType[*database.AccessError](err)
	if refused == nil {
		d.owners(path)
		return false
	}
	d.note("database", Failed, refused.Detail, refused.Remedy)
	return true
}

// owners looks, for root, whether the service's user can use the files that root sees:
// the user who owns the directory or, if that is root, the database.
func (d *doctor) owners(path string) {
	if os.Geteuid() != 0 {
		return
	}
	path = database.Linked(path)
	uid, gid, known := database.OwnerOf(filepath.Dir(path))
	if !known || uid == 0 {
		if uid, gid, known = database.OwnerOf(path); !known || uid == 0 {
			return
		}
	}
	for _, file := range []string{path, path + "-wal", path + "-shm", d.settings.KeyFile} {
		info, err := os.Stat(file)
		if err != nil || database.May(info, uid, gid, file != d.settings.KeyFile) {
			continue
		}
		d.note("owner", Failed, fmt.Sprintf("%s has mode %04o and another owner: the service's user (id %d) cannot use it", file,
			info.Mode().Perm(), uid),
			fmt.Sprintf("chown %d:%d %s", uid, gid, file))
	}
}

// locked reports whether another program keeps an embedded database to itself.
// What can be read of it then may be half of a change.
func (d *doctor) locked(ctx context.Context) bool {
	path, embedded := d.settings.SQLitePath()
	if !embedded {
		return false
	}
	pid, err := database.LockedBy(ctx, path)
	if err != nil || pid == 0 {
		return false // an error comes again when the file is opened
	}
	d.note("database", Failed, fmt.Sprintf("process %d has locked %s, so that the service could not write", pid, path),
		"end that program, or wait until it is done")
	return true
}

// contents looks at the server's clock, and at what is kept in tables that this
// program knows.
func (d *doctor) contents(ctx context.Context, found database.Inspection) {
	_, embedded := d.settings.SQLitePath()
	known := found.Check(database.Existing) == nil
	if embedded && !known {
		return
	}
	db, err := database.Look(ctx, d.settings.Database)
	if err != nil {
		d.note("database", Failed, eachOnce(err), database.Remedy(err))
		return
	}
	defer db.Close()
	if !embedded {
		d.clock(ctx, db)
	}
	if known {
		d.policyNames(ctx, db)
		d.deciders(ctx, db)
		d.foreign(ctx, db)
		d.companies(ctx, db)
		d.backedUp(ctx, db)
		d.webhooks(ctx, db)
	}
}

// How far this machine's clock may be off the database's. Replicas go by the
// database's clock, but Google refuses credentials that are signed five minutes
// off, and certificates, QR codes and the lines of the log go by this machine's.
const (
	clockNoticed = 30 * time.Second
	clockRefused = 5 * time.Minute
)

func (d *doctor) clock(ctx context.Context, db *database.DB) {
	const check, remedy = "clock", "let both machines take the time from the network (NTP)"
	ahead, err := db.ClockAhead(ctx, d.now)
	off := ahead.Abs().Round(time.Second)
	side := "behind"
	if ahead < 0 {
		side = "ahead of"
	}
	says := fmt.Sprintf("this machine's clock is %s %s the database's", phrase.Span(off), side)
	switch {
	case err != nil:
		d.note(check, Warning, eachOnce(err), "try again")
	case off > clockRefused:
		d.note(check, Failed, says, remedy)
	case off > clockNoticed:
		d.note(check, Warning, says, remedy)
	default:
		d.note(check, Fine, "agrees with the database's", "")
	}
}

// What an embedded database should find on its disk: room for its log, which
// may grow to some megabytes before it is written back, and for a backup.
const (
	diskScarce = 256 << 20
	diskFull   = 16 << 20
)

// diskFree looks at the disk of an embedded database.
func (d *doctor) diskFree() {
	path, embedded := d.settings.SQLitePath()
	if !embedded {
		return
	}
	left, known := database.DiskFree(path)
	says := fmt.Sprintf("%d MiB are free for %s", left>>20, path)
	const remedy = "make room, or move the database to a larger disk"
	switch {
	case !known: // a missing directory is reported as the database's
	case left < diskFull:
		d.note("disk", Failed, says, remedy)
	case left < diskScarce:
		d.note("disk", Warning, says, remedy)
	default:
		d.note("disk", Fine, says, "")
	}
}

// eachOnce is an error in one line. A client that connects to several addresses, or
// with and without TLS, fails several times with the same words.
func eachOnce(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// schema compares the database's version with this program's.
func (d *doctor) schema(v database.Version) {
	own := database.SchemaNumber()
	err := v.Check(database.Upgrade)
	refused, _ := errors.AsType[*database.SchemaError](err)
	switch {
	case v.Empty():
		d.note("schema", Warning, "the database is empty", "`muster company create` or `muster serve` sets it up; if you expected data, "+
			"check MUSTER_DATABASE")
	case refused != nil:
		d.note("schema", Failed, refused.Detail, refused.Remedy)
	case v.Schema < own:
		d.note("schema", Warning, fmt.Sprintf("the database was made by an older Muster: its schema is %d, this program's is %d; %s",
			v.Schema, own, phrase.Count(own-v.Schema, "migration is", "migrations are")+" pending"),
			"back it up with the older program, stop that, then run `muster migrate` or start `muster serve`")
	case v.Schema > own:
		d.note("schema", Warning, fmt.Sprintf("the database was changed by a newer Muster: its schema is %d, this program's is %d; this "+
			"program may still serve it", v.Schema, own),
			"replace this program by the newer one")
	default:
		d.note("schema", Fine, fmt.Sprintf("%d, this program's own", v.Schema), "")
	}
}

// integrity reads the whole of an embedded database.
func (d *doctor) integrity(ctx context.Context, found database.Inspection) {
	if _, embedded := d.settings.SQLitePath(); !embedded || found.Empty() {
		return
	}
	if err := database.QuickCheck(ctx, d.settings.Database); err != nil {
		d.note("integrity", Failed, err.Error(), "stop the service and put a backup in its place with `muster restore FILE`")
		return
	}
	if err := database.Foreign(ctx, d.settings.Database); err != nil {
		d.note("integrity", Failed, err.Error(), "find out who changed the file and what it did since; then stop the service and put a "+
			"backup from before in its place with `muster restore FILE`")
		return
	}
	d.note("integrity", Fine, "the file is not damaged, and has Muster's tables and nothing else", "")
}

// keyAhead is how far after now the newest key may have been made: clocks of machines differ.
const keyAhead = time.Hour

// keyFile looks at the key file and whether it belongs to the database; nil: that
// could not be read.
func (d *doctor) keyFile(found *database.Inspection) {
	const restore = "restore the key file that belongs to the database, or give up what depends on it with `muster serve " +
		"--accept-lost-keys`"
	path := d.settings.KeyFile
	info, err := os.Stat(path)
	_, embedded := d.settings.SQLitePath()
	switch {
	case path == "":
		return // the settings are not complete, which is reported
	case errors.Is(err, fs.ErrNotExist) && found != nil && (&Keys{}).Belong(*found) != nil:
		d.note("key file", Failed, fmt.Sprintf("%s does not exist, and the database needs keys: %v", path, (&Keys{}).Belong(*found)),
			restore)
		return
	case errors.Is(err, fs.ErrNotExist) && embedded:
		d.note("key file", Fine, path+" does not exist yet; the first start makes it", "")
		return
	case err != nil:
		d.note("key file", Failed, err.Error(),
			"make it once with `muster doctor --make-key-file FILE` and give the same file to every replica")
		return
	}
	private := PrivateKeyFile(path)
	if private != nil {
		d.note("key file", Failed, fmt.Sprintf("%s may be read or changed by others (mode %04o), and muster serve refuses it", path,
			info.Mode().Perm()), "chmod 600 "+path)
	}
	keys, err := LoadKeys(path)
	if errors.Is(err, fs.ErrPermission) {
		refused, _ := errors.AsType[*database.AccessError](database.NoAccess(path))
		d.note("key file", Failed, refused.Detail, refused.Remedy)
		return
	}
	if err != nil {
		d.note("key file", Failed, err.Error(), "restore the file from a backup; a new one cannot open what the old one sealed")
		return
	}
	if found != nil {
		if err := keys.Belong(*found); err != nil {
			d.note("key file", Failed, path+" belongs to another database: "+err.Error(), restore)
			return
		}
	}
	if made := keys.signing[0].made; made.Sub(d.now()) > keyAhead {
		d.note("key file", Failed, fmt.Sprintf("the newest key of %s was made at %s, which this machine's clock has not reached", path,
			made.UTC().Format(time.RFC3339)),
			"set the clock; if it is right, set createdAt of that key in the file to the present time, and restart every replica with it")
		return
	}
	if private == nil {
		d.note("key file", Fine, path+" is not readable by others and belongs to the database", "")
	}
}

// policyNames reports names from before the rules of names: each stays, but
// people may confuse it with another.
func (d *doctor) policyNames(ctx context.Context, db *database.DB) {
	const check = "policy names"
	odd, err := db.OddNames(ctx)
	if err != nil {
		d.note(check, Failed, "cannot read the policies' names: "+err.Error(), "repair the database")
		return
	}
	if len(odd) == 0 {
		d.note(check, Fine, "each can be told from the others", "")
		return
	}
	for _, n := range odd {
		detail := fmt.Sprintf("company %s, policy %s (%q)", n.Company, n.PolicyID, policy.ShownName(n.Name))
		if n.Wrong != "" {
			detail += ": its name " + n.Wrong
		}
		if n.LooksLike != "" {
			detail += ": its name looks like that of policy " + n.LooksLike
		}
		d.note(check, Warning, detail, "rename the policy in the portal")
	}
}
