package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// startPHPMyAdmin starts phpMyAdmin for a database server of its own.
func startPHPMyAdmin(t *testing.T) *app {
	t.Helper()
	root := copyPackage(t, "/usr/share/phpmyadmin", "phpmyadmin")
	own := t.TempDir()
	socket := startMariaDB(t,
		`CREATE USER admin@localhost IDENTIFIED BY 'pma secret'`,
		`GRANT ALL ON *.* TO admin@localhost WITH GRANT OPTION`)
	vendor := filepath.Join(root, "libraries/vendor_config.php")
	replaceIn(t, vendor, "/etc/phpmyadmin/", own+"/")
	replaceIn(t, vendor, "/var/lib/phpmyadmin/tmp/", own+"/tmp/")
	if err := os.Mkdir(filepath.Join(own, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, own, map[string]string{"config.inc.php": `<?php
$cfg['blowfish_secret'] = 'thirty-two bytes for the cookies';
$cfg['Servers'][1]['auth_type'] = 'cookie';
$cfg['Servers'][1]['host'] = 'localhost';
$cfg['Servers'][1]['socket'] = '` + socket + `';
$cfg['PmaNoRelation_DisableWarning'] = true;
$cfg['SendErrorReports'] = 'never';
`})
	return startApp(t, appOptions{Root: root})
}

func TestPHPMyAdminInTheBrowser(t *testing.T) {
	startsApplication(t)
	a := startPHPMyAdmin(t)
	b := newBrowser(t).newProfile().open(a.URL + "/")

	b.fill("#input_username", "admin")
	b.fill("#input_password", "wrong")
	b.click("#input_go")
	b.wait(`document.body.innerText.includes('Access denied for user')`)
	b.refill("#input_username", "admin")
	b.fill("#input_password", "pma secret")
	b.click("#input_go")
	b.wait(`document.body.innerText.includes('User: admin@localhost')`)

	b.visit(a.URL + "/index.php?route=/server/databases")
	b.fill("#text_create_db", "harbour")
	b.press("#buttonGo")
	b.wait(`document.querySelector('#createTableMinimalForm') && CommonParams.get('db') === 'harbour'`)

	b.refill("#createTableMinimalForm [name=table]", "boats")
	b.refill("#createTableMinimalForm [name=num_fields]", "2")
	b.press("#createTableMinimalForm [type=submit]") // a click may miss what still moves
	b.wait(`document.querySelector('#field_1_1')`)
	b.fill("#field_0_1", "id")
	b.fill("#field_1_1", "name")
	b.fill("#field_1_2", "TEXT")
	b.press("[name=do_save_data]")
	b.wait(`CommonParams.get('table') === 'boats' && document.querySelector('#tablestructure')`)

	pmaQuery(b, a, "INSERT INTO boats VALUES (1, 'Ænna'), (2, '<b>Bertha</b>')", "2 rows inserted")
	pmaQuery(b, a, "SELECT id * 21 AS answer, name FROM boats ORDER BY id DESC", "Showing rows 0 - 1 (2 total")
	b.waitText(".table_results td.data", "42")
	b.waitText(".table_results td.data", "<b>Bertha</b>")
	b.waitText(".table_results td.data", "Ænna")
	b.picture(t, "phpmyadmin.png", false)
	pmaQuery(b, a, "SELECT nonsense FROM boats", "#1054 - Unknown column 'nonsense'")

	b.click(`a[href*="route=/logout"]`)
	b.wait(`document.querySelector('#input_username')`)
	a.checkPHPLog()
}

// pmaQuery runs a query on the page for it and waits until the page says a text.
func pmaQuery(b *tab, a *app, query, text string) {
	b.t.Helper()
	b.visit(a.URL + "/index.php?route=/database/sql&db=harbour")
	b.wait(`document.querySelector('#sqlqueryform .CodeMirror')`)
	b.run(`document.querySelector('#sqlqueryform .CodeMirror').CodeMirror.setValue(` + strconv.Quote(query) + `)`)
	// A script of the page listens for it.
	b.wait(`jQuery._data(document, 'events').click.some((e) => e.selector === '#button_submit_query')`)
	b.press("#button_submit_query")
	b.wait(`document.querySelector('#sqlqueryresultsouter')?.innerText.includes(` + strconv.Quote(text) + `)`)
}
