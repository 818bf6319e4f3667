package main

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// muster is a container of Muster's image, with what a service changes.
func (p proof) muster(name string, service types.ServiceConfig, project *types.Project) (container, error) {
	root := filepath.Join(p.dir, name)
	image, err := p.unpack(root)
	if err != nil {
		return container{}, err
	}
	c := container{Root: root, Env: image.Env, Dir: image.WorkingDir, Args: append(image.Entrypoint, image.Cmd...),
		ReadOnly: service.ReadOnly, Tmpfs: service.Tmpfs, NoCaps: slices.Contains(service.CapDrop, "ALL"),
		NoGain: slices.Contains(service.SecurityOpt, "no-new-privileges:true")}
	if c.UID, c.GID, err = owner(image.User); err != nil {
		return container{}, err
	}
	for key, value := range service.Environment {
		c.Env = append(c.Env, key+"="+*value)
	}
	slices.Sort(c.Env)
	for volume := range image.Volumes { // an anonymous volume, with the image's owner and mode
		kept := root + "-volume"
		if err := exec.Command("cp", "-a", filepath.Join(root, volume), kept).Run(); err != nil {
			return container{}, err
		}
		c.Mounts = append(c.Mounts, mount{From: kept, To: volume})
	}
	c.Mounts = append(c.Mounts, mount{From: "/etc/hosts", To: "/etc/hosts", ReadOnly: true})
	for _, secret := range service.Secrets {
		c.Mounts = append(c.Mounts, mount{From: project.Secrets[secret.Source].File, To: secret.Target, ReadOnly: true})
	}
	return c, c.places()
}

// places makes what an engine mounts on, which the image does not have.
func (c container) places() error {
	err := os.MkdirAll(filepath.Join(c.Root, "proc"), 0o755)
	for _, m := range c.Mounts {
		place := filepath.Join(c.Root, m.To)
		if info, failed := os.Stat(m.From); failed == nil && !info.IsDir() {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(place), 0o755), os.WriteFile(place, nil, 0o600))
		}
	}
	return err
}

// standIn is Debian's program for another image, on this machine's files.
func (p proof) standIn(name string, service types.ServiceConfig, project *types.Project) (container, error) {
	c := container{Dir: p.dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
	files := map[string]string{} // of the container, on this machine
	for _, secret := range service.Secrets {
		files[secret.Target] = project.Secrets[secret.Source].File
	}
	for _, volume := range service.Volumes {
		files[volume.Target] = volume.Source
		if volume.Type == types.VolumeTypeVolume {
			files[volume.Target] = filepath.Join(p.dir, name+"-"+volume.Source)
		}
	}
	for key, value := range service.Environment {
		if there, ok := files[*value]; ok {
			value = &there
		}
		c.Env = append(c.Env, key+"="+*value)
	}
	switch name {
	case "postgres":
		return postgres(c, files["/var/lib/postgresql/data"], files["/run/secrets/postgres"])
	case "caddy":
		c.Env = append(c.Env, "XDG_DATA_HOME="+files["/data"], "HOME="+p.dir)
		c.Args = []string{"/bin/sh", "-euc", "exec caddy run --adapter caddyfile --config " + files["/etc/caddy/Caddyfile"]}
		return c, nil
	}
	return container{}, errors.New("nothing stands in for its image")
}

// postgres does what the entry point of the image of PostgreSQL does, which reads the password as root.
func postgres(c container, data, secret string) (container, error) {
	found, err := user.Lookup("postgres")
	if err != nil {
		return container{}, err
	}
	password, err := os.ReadFile(secret)
	if err != nil {
		return container{}, err
	}
	c.UID, _ = strconv.Atoi(found.Uid) // numbers, on this system
	c.GID, _ = strconv.Atoi(found.Gid)
	if err := errors.Join(os.Mkdir(data, 0o700), os.Chown(data, c.UID, c.GID)); err != nil {
		return container{}, err
	}
	c.Env, c.Dir = append(c.Env, "PGDATA="+data, "POSTGRES_PASSWORD="+strings.TrimSpace(string(password))), data
	c.Args = []string{"/bin/sh", "-euc", `
		PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH
		if [ ! -e PG_VERSION ]; then
			echo "$POSTGRES_PASSWORD" | initdb -U $POSTGRES_USER --pwfile=/dev/stdin -A scram-sha-256
			echo "host all all all scram-sha-256" >>pg_hba.conf
			echo "CREATE DATABASE $POSTGRES_DB" | postgres --single postgres
		fi
		exec postgres -c listen_addresses='*' -k $PGDATA`}
	return c, nil
}
