package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"ephpm/phpbridge"
)

// lookUpUser finds whom SiteConfig.RunAs means: names or numbers.
func lookUpUser(runAs string) (*phpbridge.User, error) {
	name, group, hasGroup := strings.Cut(runAs, ":")
	u, err := user.Lookup(name)
	if err != nil && isNumber(name) {
		u, err = user.LookupId(name)
		if err != nil && hasGroup { // a user without a name needs no entry
			u, err = &user.User{Username: name, Uid: name, Gid: group, HomeDir: "/"}, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`%q is not a user of this system; want "user" or "user:group"`, name)
	}
	account := &phpbridge.User{Name: u.Username, Home: u.HomeDir}
	if account.UID, err = number(u.Uid); err != nil {
		return nil, err
	}
	if !hasGroup {
		group = u.Gid
	}
	if account.GID, err = lookUpGroup(group); err != nil {
		return nil, err
	}
	if account.Groups, err = groupsOf(u, account.GID); err != nil {
		return nil, err
	}
	return account, notRoot(account)
}

// ownerOf returns the user and the group that own a directory.
func ownerOf(info fs.FileInfo) (*phpbridge.User, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("the system does not tell the owner")
	}
	uid := strconv.FormatUint(uint64(st.Uid), 10)
	account := &phpbridge.User{Name: uid, Home: "/", UID: st.Uid, GID: st.Gid}
	if u, err := user.LookupId(uid); err == nil {
		account.Name, account.Home = u.Username, u.HomeDir
	}
	return account, notRoot(account)
}

// notRoot refuses what run_as is there to prevent.
func notRoot(u *phpbridge.User) error {
	if u.UID == 0 || u.GID == 0 {
		return fmt.Errorf("scripts of %q would run as root or in its group; choose another user", u.Name)
	}
	return nil
}

func lookUpGroup(name string) (uint32, error) {
	if g, err := user.LookupGroup(name); err == nil {
		name = g.Gid
	}
	gid, err := number(name)
	if err != nil {
		return 0, fmt.Errorf("%q is not a group of this system", name)
	}
	return gid, nil
}

// groupsOf returns the supplementary groups that the system gives a user.
func groupsOf(u *user.User, primary uint32) ([]uint32, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, nil // it has no entry, so none
	}
	var groups []uint32
	for _, id := range ids {
		gid, err := number(id)
		if err != nil {
			return nil, err
		}
		if gid == 0 {
			return nil, fmt.Errorf("user %q is in the group of root; choose another user", u.Username)
		}
		if gid != primary {
			groups = append(groups, gid)
		}
	}
	return groups, nil
}

func isNumber(s string) bool {
	_, err := number(s)
	return err == nil
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n == 1<<32-1 { // "no change" for the system
		err = strconv.ErrRange
	}
	return uint32(n), err
}
