


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;


INSERT INTO public.activity VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340273363, 'cb1aahdh6dk5c0yf1p040v3ynm', 'SYSTEM', 'operator', '', 'command line', '', 'company', 'company.created', 'COMPANY', '27y5qc5nhbe4ej5pevwsjhdr84', 'Acme', 'OK', '', '[{"field":"name","before":"","after":"Acme"},{"field":"inactiveAfter","before":"","after":"30 days"},{"field":"keepActivity","before":"","after":"400 days"},{"field":"deviceCommands","before":"off","after":"on"},{"field":"destructiveCommands","before":"off","after":"on"},{"field":"policyChanges","before":"off","after":"on"},{"field":"provisioning","before":"off","after":"on"},{"field":"oauthConnections","before":"off","after":"on"}]', '', '', '', 1, 'b41b7f82160de96c3d1cea09223e19eb393839000db47f5f3a0f528ee3480a36'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340273625, 'yzk6svbbwyv4s9g6cnhfwm4yw4', 'SYSTEM', 'operator', '', 'command line', '', 'company', 'company.connected', 'COMPANY', '27y5qc5nhbe4ej5pevwsjhdr84', 'Acme', 'OK', '', '[{"field":"enterprise","before":"","after":"enterprises/LC9kn96oxwo"}]', '', '', '', 2, '7dce97ba66fcdcaa8d3e8434f0520495aeddba52a2b80fdf34ccdeeee3ecd9b7'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274039, '44r9f51s9xht5pgr8s5g09kb4m', 'SYSTEM', 'operator', '', 'command line', '', 'user', 'user.created', 'USER', 'm42y6njhedgbkyg90acacrbzpc', 'admin@acme.test', 'OK', '', '[{"field":"email","before":"","after":"admin@acme.test"},{"field":"name","before":"","after":"admin@acme.test"},{"field":"role","before":"","after":"admin"},{"field":"rights","before":"","after":"view-devices command-devices destroy-devices view-policies edit-policies provision-devices manage-keys manage-users manage-company view-activity"},{"field":"policies","before":"","after":"all"},{"field":"password","before":"","after":"set anew"}]', '', '', '', 3, '0e609d733ab57ed68f09989fe4f5e62390659d07c13ad5401807f4a9d97eab15'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274152, 'b9yxx8eraeb6yh1da4vmw63gpr', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.created', 'POLICY', 'fm9d88shgd9mfpjp9ea3qwe1ac', 'Warehouse', 'OK', '', '[{"field":"version","before":"","after":"1"},{"field":"origin","before":"","after":"CREATE"}]', '', '', '', 4, '4b98d8b8e77fb991f80baa050027141ec22a5a317aa761e21f43fb2a58d625e8'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274281, 'p8kzx0gxvgdetbp40z8xa7d2mc', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.created', 'POLICY', '7yzc5axxv5knmd5jxyrbwqbe2c', 'Kiosk', 'OK', '', '[{"field":"version","before":"","after":"1"},{"field":"origin","before":"","after":"CREATE"}]', '', '', '', 5, '31621dd1321ca243556a23c8d7d6f3f95c4087254f9b3853ef18096a779363e2'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274482, 'ah96kqy18z30ywfrqdxkhqhdkg', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.created', 'POLICY', 'h1whx4bpqq2ra1v6zqtw1p3s9r', 'Headsets', 'OK', '', '[{"field":"version","before":"","after":"1"},{"field":"origin","before":"","after":"CREATE"}]', '', '', '', 6, '2ec324f9439d65b53720fd871164e8c35d8f2c25c7b379105b814dd1ca34ba51'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274554, 'ymvsxsfvczedst0sz529q1vs4r', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.saved', 'POLICY', 'fm9d88shgd9mfpjp9ea3qwe1ac', 'Warehouse', 'OK', '', '[{"field":"version","before":"","after":"2"},{"field":"origin","before":"","after":"PORTAL"}]', '', '', '', 7, '6267b84c1954fa2eb5c36f78e911731e03a60ef6980ffcd66606dcd1bb827395'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274717, 'n0kbss0z2cakf98aj73nnpzgcw', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', 'wtwq1dxnx9hn6f2hfkadjhqncw', 'codes', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"9az0SWip"}]', '', '', '', 8, '16e13bfdf985666457525099c3cbe36b3656c2057a9adbdfb192b9c3f344b259'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274820, 'eafh7kns6xxcjwpf826rhr6chm', 'SYSTEM', 'operator', '', 'command line', '', 'asset', 'asset.imported', '', '', '', 'OK', '', '[{"field":"assets","before":"","after":"2"}]', '', '', '', 9, 'eb02608d3dfcd56873e5e5e8d6f2852431deb7ae851a14118871885288bbc5e0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340274936, 'sgjsts766ks1phvydwatvx8ew0', 'API_KEY', 'wtwq1dxnx9hn6f2hfkadjhqncw', '', 'codes', '9az0SWip', 'provisioning', 'provisioning.issued', 'POLICY', 'fm9d88shgd9mfpjp9ea3qwe1ac', 'Warehouse', 'OK', '', '[{"field":"personalUsage","before":"","after":"UNSPECIFIED"}]', 'cw65dp4xfrqq0nn9h1aqn9jh8g', '127.0.0.1', 'curl/7.88.1', 10, '9ef90dd615631ffc4f7aac231f68c6f03b06a1009efbc9e6ba387e0d4653ac77'),
	('n65ez0nexehsrbr52j12ezv25r', 1795340273503, 'j55zktessb0vkjs33ztshj76k8', 'SYSTEM', 'operator', '', 'command line', '', 'company', 'company.created', 'COMPANY', 'n65ez0nexehsrbr52j12ezv25r', 'Other', 'OK', '', '[{"field":"name","before":"","after":"Other"},{"field":"inactiveAfter","before":"","after":"30 days"},{"field":"keepActivity","before":"","after":"400 days"}]', '', '', '', 1, 'a6d696ca9021bc9b45d6a211b559864763793ab4815d64376b4272db7e5757dc'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340275238, '9gkfnt0jdvq1j20jdz4ggwv4t8', 'API_KEY', 'wtwq1dxnx9hn6f2hfkadjhqncw', '', 'codes', '9az0SWip', 'provisioning', 'provisioning.issued', 'POLICY', '7yzc5axxv5knmd5jxyrbwqbe2c', 'Kiosk', 'OK', '', '[{"field":"personalUsage","before":"","after":"UNSPECIFIED"}]', 'vveahxjz070rdw4s9t2bh5443w', '127.0.0.1', 'curl/7.88.1', 11, '17712fc867bf56cf47ae3fde58676b01bdf2628cc832c9fdfb9039145bca6963'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340275616, 'd6s5bhyxbh2yhfyf54v3qsj35w', 'API_KEY', 'wtwq1dxnx9hn6f2hfkadjhqncw', '', 'codes', '9az0SWip', 'provisioning', 'provisioning.issued', 'POLICY', '7yzc5axxv5knmd5jxyrbwqbe2c', 'Kiosk', 'OK', '', '[{"field":"personalUsage","before":"","after":"UNSPECIFIED"}]', 'shs2h6ps0xkn928mamghqsx2xr', '127.0.0.1', 'curl/7.88.1', 12, 'dab6cf319bc2387e3aa4e989d5c05f239b95c80ecf85c597133cdb0fbbb53fef'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340276396, 'pmrrygm589dm6sg22n597rjc90', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', 'aabeczh4dd669h5hg8j9xqzst4', 'first', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"ljfnf7kg"}]', '', '', '', 13, 'a7e3da5ea82590f98f03bd601e4289f1dc47950399d665b200dd75bdb1473996'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340279342, 'ydx6e13rw0qjrf9h775kkx6pk0', 'USER', 'm42y6njhedgbkyg90acacrbzpc', 'm42y6njhedgbkyg90acacrbzpc', 'admin@acme.test', '', 'signin', 'signin.opened', 'USER', 'm42y6njhedgbkyg90acacrbzpc', 'admin@acme.test', 'OK', '', '[{"field":"method","before":"","after":"password"}]', '', '127.0.0.1', 'curl/7.88.1', 25, 'c0c6c6442628451f38366d7db1b7a3908e7a2ccffdadd366962df60d136974ab'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340279541, 'c2y75grnbc2a1wp4ybf4xkbr3g', 'USER', 'm42y6njhedgbkyg90acacrbzpc', 'm42y6njhedgbkyg90acacrbzpc', 'admin@acme.test', '', 'connection', 'connection.granted', 'CONNECTION', 'kgt566kh1m1p8qrb8zh3j46wj4', 'Test', 'OK', '', '[{"field":"scopes","before":"","after":"mcp:devices:read"}]', '', '127.0.0.1', 'curl/7.88.1', 26, '8e15502c331db17332fbf0570ac5031619225f0df6ea9d347c95423877bbebdb'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340276424, 'vsc0qdabw25k0g3yg90xsz1gsr', 'API_KEY', 'aabeczh4dd669h5hg8j9xqzst4', '', 'first', 'ljfnf7kg', 'command', 'command.sync_policy', 'ASSET', 'bwa5457v461djc5ac5b0cfkg8r', '', 'OK', 'kb9qbkfb7m8tnaftgsgxp4nrcr', '', '1vsyvwpt0fkjfk7fchwwykqz5g', '127.0.0.1', 'curl/7.88.1', 14, '06e2caf238731c14efc89c811a8f132137034e8603a82c8f49945655dc116085'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340276445, '0rhqzxd45w2jhw0byszg09djn0', 'API_KEY', 'aabeczh4dd669h5hg8j9xqzst4', '', 'first', 'ljfnf7kg', 'command', 'command.sync_policy', 'ASSET', 'zy9eezb9x5569a5m07hsbb2cq0', '', 'OK', 'r7pjv9s82ffqf2nybethqjhr4c', '', 'y9m7gjf1n0r5gtmxzqpmwxm8pr', '127.0.0.1', 'curl/7.88.1', 15, 'd09be878cfcfdf3b5c3c12b9a11584dbc3a86ed081f2f5cd33d9d2e4048e4b34'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278748, 'wgmw0msdm3d25tnbc0vyv3xy8m', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', '7z50kw54m0c28nmar4168fa7yg', 'second', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"T403G8qC"}]', '', '', '', 16, '9ebe999d61b80260f00f0f544eac3d07699b26442f082abd3ae18d42462dc0f5'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278784, 'fy5syyq7h2hyv65v414669ycfr', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', '', 'second', 'T403G8qC', 'command', 'command.notification_message', 'ASSET', 'bwa5457v461djc5ac5b0cfkg8r', '', 'OK', 'qybk27gckd7mtjwtm7mwhtt094', '', 'cc3s1ps4x3taas6tfrfpgg6p7r', '127.0.0.1', 'curl/7.88.1', 17, '02a50323c6b2fa49de4cc03251763d50a696ed2b7c0f0b0676f6c594b4d03034'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278822, 'k3fmdqzghecqjp1hahyxytsq2w', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', '', 'second', 'T403G8qC', 'command', 'command.status_report', 'ASSET', 'bwa5457v461djc5ac5b0cfkg8r', '', 'OK', 'dy307ark6vm6jzm1gmtv0n9pa4', '', '5qad901x2mvxjjqbencjnhe0vg', '127.0.0.1', 'curl/7.88.1', 18, 'dae4cb5b775b7ed0dea9ee2f1e97d0b497799bfcd6a3652357e116c165d54caf'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278875, 'ngfeb59e5m8z1mdfexcegz2a2r', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', '', 'second', 'T403G8qC', 'command', 'command.notification_message', 'ASSET', 'zy9eezb9x5569a5m07hsbb2cq0', '', 'OK', 'qmb55vxhbx1g30vsdqqqp02wtw', '', 'm1hsadv72jb8gwtkq1bk1stg9r', '127.0.0.1', 'curl/7.88.1', 19, '044bff8f821fc229bc62fb5f6b174306dd952fc874ebf416275469d0a2fb6645'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278906, 'yy70kamrxmjhepr1np50nyzsaw', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', '', 'second', 'T403G8qC', 'command', 'command.status_report', 'ASSET', 'zy9eezb9x5569a5m07hsbb2cq0', '', 'OK', 't929yezbc0rzk3jg3as2wetyrw', '', 'x85qh9ve7wsw3zysnm07hye81m', '127.0.0.1', 'curl/7.88.1', 20, '9656112ce0fcdb4aaa71d604d11aa4acbfebf1e714683292b798c715ab5b854b'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278934, 'qvweg5yt9w8bd90fzf0t3jw0cm', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', '', 'second', 'T403G8qC', 'command', 'command.lock', 'ASSET', '2pg9jsqzxbb7sysvzdywf8vmpr', '', 'OK', 'gsfkwezc3yr82nw077qka1g07r', '', '9chztbk9e4mkk8yg0v194mzv1g', '127.0.0.1', 'curl/7.88.1', 21, 'e65ef85f92df7c561db455147e8187df1166bbff5af443520486cd77ca50d966'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340278994, 'k3b6p7f807a1btygbn9nq1jfy8', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', '', 'second', 'T403G8qC', 'command', 'command.status_report', 'ASSET', '2pg9jsqzxbb7sysvzdywf8vmpr', '', 'OK', 'ybw80jnqns8xdmdv5gt9807fm8', '', 'tv99s7c2m7dn2v44fe1vjg8s30', '127.0.0.1', 'curl/7.88.1', 22, '7682100e2650e11fbb95ea8c0725716584f7608690d85a88ad7af80424e766ce'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340279155, 'b7b3rbdzb4sb2zevh8q20g0rdm', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', 'c01px9t33ckanh78hr7h4dw33r', 'ci', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"HZzk2RG5"}]', '', '', '', 23, '7ab4d5b97777d7aecb91d95efa20df5a416e5fa739ac9cc0c9f2c738b58f1c2e'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1795340279181, '6m3frvmh3tn2chrvhgetckr6m8', 'API_KEY', 'c01px9t33ckanh78hr7h4dw33r', '', 'ci', 'HZzk2RG5', 'proposal', 'proposal.made', 'POLICY', 'fm9d88shgd9mfpjp9ea3qwe1ac', 'Warehouse', 'OK', 'prp_s0f0pvef3fjr7zyxjg4k9kaw4g', '[{"field":"SMS","before":"NOT_SET","after":"BLOCK"}]', 'rcza197q6hxtwy5z4fvg8wb33g', '127.0.0.1', 'curl/7.88.1', 24, '0525ca748d1aa40be0468b973df110fa250fcffc4e39f2e7f02e07d9b3b05409');



INSERT INTO public.activity_heads VALUES
	('n65ez0nexehsrbr52j12ezv25r', 1, '', 1, 'a6d696ca9021bc9b45d6a211b559864763793ab4815d64376b4272db7e5757dc', 'bc18be996b88fc7ebd5fa972ba1d84eda556b8b3122862045224d62bdf92dd207513630cda7cd4a418ff87b596c0fffe0ac7711d178116931d68917f4b299d03'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 1, '', 26, '8e15502c331db17332fbf0570ac5031619225f0df6ea9d347c95423877bbebdb', '38f4bccf75ed5d2dfe6cd9765c33bb9097e9f3f3f0f6f7cfda95a74cf21654d60d54b591ddfcb370924f711a6a38454a478792ac76fbf44ab675eb600e6b1704');



INSERT INTO public.agent_deliveries VALUES
	('qybk27gckd7mtjwtm7mwhtt094', 'eb22a90f1z5g0kq6t5242zdg0r', 'NOTIFICATION_MESSAGE', '{"body":"World","title":"Hello"}', 1795340278787, 1795426678787, true, 1795340278787, 0, 0),
	('dy307ark6vm6jzm1gmtv0n9pa4', 'eb22a90f1z5g0kq6t5242zdg0r', 'STATUS_REPORT', '{}', 1795340278825, 1795426678825, false, 1795340278825, 0, 0),
	('qmb55vxhbx1g30vsdqqqp02wtw', '7556p0zw9by583t43y8ksr5120', 'NOTIFICATION_MESSAGE', '{"body":"World","title":"Hello"}', 1795340278876, 1795426678876, true, 1795340278876, 0, 0),
	('t929yezbc0rzk3jg3as2wetyrw', '7556p0zw9by583t43y8ksr5120', 'STATUS_REPORT', '{}', 1795340278910, 1795426678910, false, 1795340278910, 0, 0);



INSERT INTO public.agent_devices VALUES
	('eb22a90f1z5g0kq6t5242zdg0r', '27y5qc5nhbe4ej5pevwsjhdr84', 'bwa5457v461djc5ac5b0cfkg8r', 1, 'manager', 'ed25519', 'MCowBQYDK2VwAyEA-xqCj0uBH9rf93PQ3RbwAeVd0hF7O6P7p-m0Gn9h7qw', 1004, 'ACTIVE', false, '["reboot","notify","launch","silent_install","user_restrictions","wipe","shutdown","fresh_location","persistence"]', '', 2, 0, 1795340275984, 1795340278588),
	('7556p0zw9by583t43y8ksr5120', '27y5qc5nhbe4ej5pevwsjhdr84', 'zy9eezb9x5569a5m07hsbb2cq0', 1, 'manager', 'ed25519', 'MCowBQYDK2VwAyEAmxUguS5nAuBBr4LLzDhMywGxxL4HRiYlm4DiafkwBaw', 1004, 'ACTIVE', false, '["reboot","notify","launch","silent_install","user_restrictions","wipe","shutdown","fresh_location","persistence"]', '', 2, 0, 1795340275485, 1795340278534);



INSERT INTO public.agent_tokens VALUES
	('c30454d7effe8d958f7caf5bd8b91cc815bfb04d207424045e16a141414c24c4', '27y5qc5nhbe4ej5pevwsjhdr84', '7yzc5axxv5knmd5jxyrbwqbe2c', 1795426675232, '7556p0zw9by583t43y8ksr5120', 1795340275481),
	('129bdb5f36cd92b3a6073f2b13659c2e575418bedb9306ffe12d34cb98c34771', '27y5qc5nhbe4ej5pevwsjhdr84', '7yzc5axxv5knmd5jxyrbwqbe2c', 1795426675610, 'eb22a90f1z5g0kq6t5242zdg0r', 1795340275980);



INSERT INTO public.api_keys VALUES
	('aabeczh4dd669h5hg8j9xqzst4', 'ljfnf7kg', '27y5qc5nhbe4ej5pevwsjhdr84', 'first', 'ea491afa334b28c6df98912864f00be4750a3ffc7903ef3a80ee1fa945171593', 63, 'operator', 1795340276392, 0, 0, 1795340276462, 'null'),
	('wtwq1dxnx9hn6f2hfkadjhqncw', '9az0SWip', '27y5qc5nhbe4ej5pevwsjhdr84', 'codes', '43e2c224455e80db1fa66b9c8e344fb3ceffd6f2afab273a74d417e9687bb8b5', 63, 'operator', 1795340274716, 0, 0, 1795340276107, 'null'),
	('7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', '27y5qc5nhbe4ej5pevwsjhdr84', 'second', 'b9e9fcb2f9a59334f4e2a746b7980dd0c850b03c5a3a2d96652945a7091e1601', 63, 'operator', 1795340278747, 0, 0, 1795340278986, 'null'),
	('c01px9t33ckanh78hr7h4dw33r', 'HZzk2RG5', '27y5qc5nhbe4ej5pevwsjhdr84', 'ci', 'bb2f4d78b0747f9821f4d062905470a2286102b0f427e01392626cc610f58528', 63, 'operator', 1795340279150, 0, 0, 1795340285421, 'null');



INSERT INTO public.asset_apps VALUES
	('2pg9jsqzxbb7sysvzdywf8vmpr', 1795340275156, '[{"package":"com.example.app","name":"com.example.app","version":"1.0.0","source":"INSTALLED_FROM_PLAY_STORE"}]');



INSERT INTO public.asset_counts VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', 'PENDING', '', 2),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'ACTIVE', 'fm9d88shgd9mfpjp9ea3qwe1ac', 1),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'SYNCHRONIZING', 'fm9d88shgd9mfpjp9ea3qwe1ac', 0),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'ACTIVE', '7yzc5axxv5knmd5jxyrbwqbe2c', 2),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'SYNCHRONIZING', '7yzc5axxv5knmd5jxyrbwqbe2c', 0);






INSERT INTO public.asset_terms VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', '#blue', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '#spare', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '1', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '2', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '3', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '8', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'blue', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'google', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'meta', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'oculus', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'pixel', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'quest', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'sp-1', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'sp-2', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'spare', '4e56pbgnhgs1dqzgfv8d7p1cn0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'spare', 'kph766metnspy99jv6pye2jqn4'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '3a3b08d380bc06ca', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '@platform', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'cmxv', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'g736b', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'samsung', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'sm-g736b', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 't6igmy5cmxv', '2pg9jsqzxbb7sysvzdywf8vmpr'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '1', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '2kjl', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '7556p0zw9by583t43y8ksr5120', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '@agent', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'sim', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'sim7r62tq2kjl', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'simulated', 'zy9eezb9x5569a5m07hsbb2cq0'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '1', 'bwa5457v461djc5ac5b0cfkg8r'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '5uoe', 'bwa5457v461djc5ac5b0cfkg8r'),
	('27y5qc5nhbe4ej5pevwsjhdr84', '@agent', 'bwa5457v461djc5ac5b0cfkg8r'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'eb22a90f1z5g0kq6t5242zdg0r', 'bwa5457v461djc5ac5b0cfkg8r'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'sim', 'bwa5457v461djc5ac5b0cfkg8r'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'simnmytom5uoe', 'bwa5457v461djc5ac5b0cfkg8r'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'simulated', 'bwa5457v461djc5ac5b0cfkg8r');



INSERT INTO public.assets VALUES
	('kph766metnspy99jv6pye2jqn4', '27y5qc5nhbe4ej5pevwsjhdr84', 'PENDING', '', 'Spare 1', 0, 1795340274809, true, 'sp-1', 'google', '', 0, '', '', '', '', '', 0, 0, 0, false, false, 0, '{"Room":"B12"}', '["spare","blue"]', '{"brand":"google","manufacturer":"Google","model":"Pixel 8","serialNumber":"SP-1"}', '', '', '
sp-1
1
spare
#spare
#blue
blue
pixel
8
google
'),
	('4e56pbgnhgs1dqzgfv8d7p1cn0', '27y5qc5nhbe4ej5pevwsjhdr84', 'PENDING', '', 'Spare 2', 0, 1795340274809, true, 'sp-2', 'oculus', '', 0, '', '', '', '', '', 0, 0, 0, false, false, 0, '', '', '{"brand":"oculus","manufacturer":"Meta","model":"Quest 3","serialNumber":"SP-2"}', '', '', '
sp-2
2
spare
quest
3
meta
oculus
'),
	('2pg9jsqzxbb7sysvzdywf8vmpr', '27y5qc5nhbe4ej5pevwsjhdr84', 'ACTIVE', 'fm9d88shgd9mfpjp9ea3qwe1ac', 'SM-G736B CMXV', 1795340275156, 1795340275160, false, 't6igmy5cmxv', 'samsung', '', 1, 'PLATFORM', 'COMPANY_OWNED', 'DEVICE_OWNER', 'enterprises/LC9kn96oxwo/devices/3a3b08d380bc06ca', 'fm9d88shgd9mfpjp9ea3qwe1ac', 2, 1795340275155, 1795340275156, false, false, 34, '', '', '{"androidBuildNumber":"EMU34.261001.001","androidDevicePolicyVersionName":"117.23.0","apiLevel":"34","bootloaderVersion":"emulator-1.0","brand":"samsung","deviceKernelVersion":"6.1.75-android14","hardware":"qcom","imei":"353544804815496","manufacturer":"samsung","model":"SM-G736B","osVersion":"14","primaryLanguageCode":"en-US","securityPatchLevel":"2026-10-01","serialNumber":"T6IGMY5CMXV","wifiMacAddress":"02:71:6c:7d:f6:36"}', '', '{"appliedState":"ACTIVE","batteryLevel":72,"deviceSettings":{"encryptionStatus":"ACTIVE_PER_USER","isDeviceSecure":true,"isEncrypted":true,"verifyAppsEnabled":true},"displays":[{"density":450,"height":2408,"name":"Built-in Screen","refreshRate":60,"state":"ON","width":1080}],"hardwareStatus":{"batteryTemperatures":[29.5],"cpuTemperatures":[38.1],"createTime":"2026-11-22T09:37:55.156Z","skinTemperatures":[30.2]},"installedAppCount":1,"memoryInfo":{"totalInternalStorage":"137438953472","totalRam":"6442450944"},"policyCompliant":true,"reportedAt":"2026-11-22T09:37:55.156Z","securityPosture":"SECURE","state":"ACTIVE","systemUpdateInfo":{"updateStatus":"UP_TO_DATE"}}', '
@platform
t6igmy5cmxv
3a3b08d380bc06ca
sm-g736b
g736b
cmxv
samsung
'),
	('zy9eezb9x5569a5m07hsbb2cq0', '27y5qc5nhbe4ej5pevwsjhdr84', 'ACTIVE', '7yzc5axxv5knmd5jxyrbwqbe2c', 'Sim 1 2KJL', 1795340278540, 1795340275485, false, 'sim7r62tq2kjl', 'simulated', '', 1, 'AGENT', 'COMPANY_OWNED', 'DEVICE_OWNER', '7556p0zw9by583t43y8ksr5120', '7yzc5axxv5knmd5jxyrbwqbe2c', 1, 1795340275485, 1795340278540, false, true, 34, '', '', '{"brand":"simulated","manufacturer":"Simulated","model":"Sim 1","osVersion":"14","serialNumber":"SIM7R62TQ2KJL"}', '', '{"batteryLevel":80,"nonComplianceDetails":[],"policyCompliant":true,"reportedAt":"2026-11-22T09:37:58.540Z"}', '
@agent
sim7r62tq2kjl
7556p0zw9by583t43y8ksr5120
sim
1
2kjl
simulated
'),
	('bwa5457v461djc5ac5b0cfkg8r', '27y5qc5nhbe4ej5pevwsjhdr84', 'ACTIVE', '7yzc5axxv5knmd5jxyrbwqbe2c', 'Sim 1 5UOE', 1795340278594, 1795340275982, false, 'simnmytom5uoe', 'simulated', '', 1, 'AGENT', 'COMPANY_OWNED', 'DEVICE_OWNER', 'eb22a90f1z5g0kq6t5242zdg0r', '7yzc5axxv5knmd5jxyrbwqbe2c', 1, 1795340275984, 1795340278594, false, true, 34, '', '', '{"brand":"simulated","manufacturer":"Simulated","model":"Sim 1","osVersion":"14","serialNumber":"SIMNMYTOM5UOE"}', '', '{"batteryLevel":80,"nonComplianceDetails":[],"policyCompliant":true,"reportedAt":"2026-11-22T09:37:58.594Z"}', '
@agent
simnmytom5uoe
eb22a90f1z5g0kq6t5242zdg0r
sim
1
5uoe
simulated
');



INSERT INTO public.budgets VALUES
	('API_KEY:wtwq1dxnx9hn6f2hfkadjhqncw', 3, 1795340334902),
	('API_KEY:aabeczh4dd669h5hg8j9xqzst4', 3, 1795340336419),
	('API_KEY:7z50kw54m0c28nmar4168fa7yg', 9, 1795340338764),
	('API_KEY:c01px9t33ckanh78hr7h4dw33r', 1, 1795340339177),
	('signin-client:127.0.0.1', 1, 1795340339261),
	('signin-email:admin@acme.test', 1, 1795340339261),
	('register:127.0.0.1', 1, 1795343879430),
	('token:mc_83m1gxxnq500exjgak2edn8smc:127.0.0.1', 1, 1795343879571);









INSERT INTO public.commands VALUES
	('r7pjv9s82ffqf2nybethqjhr4c', '27y5qc5nhbe4ej5pevwsjhdr84', 'zy9eezb9x5569a5m07hsbb2cq0', 1, 'SYNC_POLICY', 'SUCCESS', 1795340276449, 1795340278523, 'policy version 1 applied', 'API_KEY', 'aabeczh4dd669h5hg8j9xqzst4', 'ljfnf7kg', 'first', 'agent/7556p0zw9by583t43y8ksr5120/r7pjv9s82ffqf2nybethqjhr4c', 0, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('kb9qbkfb7m8tnaftgsgxp4nrcr', '27y5qc5nhbe4ej5pevwsjhdr84', 'bwa5457v461djc5ac5b0cfkg8r', 1, 'SYNC_POLICY', 'SUCCESS', 1795340276427, 1795340278584, 'policy version 1 applied', 'API_KEY', 'aabeczh4dd669h5hg8j9xqzst4', 'ljfnf7kg', 'first', 'agent/eb22a90f1z5g0kq6t5242zdg0r/kb9qbkfb7m8tnaftgsgxp4nrcr', 0, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('qybk27gckd7mtjwtm7mwhtt094', '27y5qc5nhbe4ej5pevwsjhdr84', 'bwa5457v461djc5ac5b0cfkg8r', 1, 'NOTIFICATION_MESSAGE', 'SUCCESS', 1795340278787, 0, 'accepted for delivery', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', 'second', '', 1795426678787, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('dy307ark6vm6jzm1gmtv0n9pa4', '27y5qc5nhbe4ej5pevwsjhdr84', 'bwa5457v461djc5ac5b0cfkg8r', 1, 'STATUS_REPORT', 'SENT', 1795340278825, 0, '', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', 'second', 'agent/eb22a90f1z5g0kq6t5242zdg0r/dy307ark6vm6jzm1gmtv0n9pa4', 1795426678825, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('qmb55vxhbx1g30vsdqqqp02wtw', '27y5qc5nhbe4ej5pevwsjhdr84', 'zy9eezb9x5569a5m07hsbb2cq0', 1, 'NOTIFICATION_MESSAGE', 'SUCCESS', 1795340278876, 0, 'accepted for delivery', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', 'second', '', 1795426678876, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('t929yezbc0rzk3jg3as2wetyrw', '27y5qc5nhbe4ej5pevwsjhdr84', 'zy9eezb9x5569a5m07hsbb2cq0', 1, 'STATUS_REPORT', 'SENT', 1795340278910, 0, '', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', 'second', 'agent/7556p0zw9by583t43y8ksr5120/t929yezbc0rzk3jg3as2wetyrw', 1795426678910, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('ybw80jnqns8xdmdv5gt9807fm8', '27y5qc5nhbe4ej5pevwsjhdr84', '2pg9jsqzxbb7sysvzdywf8vmpr', 1, 'STATUS_REPORT', 'SUCCESS', 1795340279000, 0, 'the asset shows the device''s last report, of 2026-11-22T09:37:55Z; the platform cannot be asked for a new one', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', 'second', '', 1795426679000, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8'),
	('gsfkwezc3yr82nw077qka1g07r', '27y5qc5nhbe4ej5pevwsjhdr84', '2pg9jsqzxbb7sysvzdywf8vmpr', 1, 'LOCK', 'SUCCESS', 1795340278939, 1795340279149, 'the device locked its screen', 'API_KEY', '7z50kw54m0c28nmar4168fa7yg', 'T403G8qC', 'second', 'enterprises/LC9kn96oxwo/devices/3a3b08d380bc06ca/operations/1795340278948', 1795945078939, '', '', 'jq3fycfzte52mtpnbvkvj2rrm8');



INSERT INTO public.companies VALUES
	('n65ez0nexehsrbr52j12ezv25r', 'other', 'Other', false, false, false, false, false, 2592000000, '', 1795340273454, 34560000000),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'acme', 'Acme', true, true, true, true, true, 2592000000, 'enterprises/LC9kn96oxwo', 1795340273313, 34560000000);






INSERT INTO public.device_names VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', '7556p0zw9by583t43y8ksr5120', 'zy9eezb9x5569a5m07hsbb2cq0', 1795340278540, false),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'eb22a90f1z5g0kq6t5242zdg0r', 'bwa5457v461djc5ac5b0cfkg8r', 1795340278594, false),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'enterprises/LC9kn96oxwo/devices/3a3b08d380bc06ca', '2pg9jsqzxbb7sysvzdywf8vmpr', 1795340279000, false);



INSERT INTO public.gate_switches VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', 'deviceCommands', true, 1795340273360, 'SYSTEM', 'operator', 'command line'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'destructiveCommands', true, 1795340273362, 'SYSTEM', 'operator', 'command line'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'policyChanges', true, 1795340273362, 'SYSTEM', 'operator', 'command line'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'provisioning', true, 1795340273362, 'SYSTEM', 'operator', 'command line'),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'oauthConnections', true, 1795340273362, 'SYSTEM', 'operator', 'command line');



INSERT INTO public.goose_db_version VALUES
	(1, 0, true, '2026-11-22 09:37:52.639113'),
	(2, 1, true, '2026-11-22 09:37:52.66114'),
	(3, 2, true, '2026-11-22 09:37:52.722954'),
	(4, 3, true, '2026-11-22 09:37:52.725755'),
	(5, 10, true, '2026-11-22 09:37:52.744891'),
	(6, 20, true, '2026-11-22 09:37:52.781801'),
	(7, 30, true, '2026-11-22 09:37:52.816677'),
	(8, 31, true, '2026-11-22 09:37:52.869614'),
	(9, 33, true, '2026-11-22 09:37:52.876105'),
	(10, 35, true, '2026-11-22 09:37:52.881246'),
	(11, 40, true, '2026-11-22 09:37:52.885941'),
	(12, 41, true, '2026-11-22 09:37:52.907498'),
	(13, 45, true, '2026-11-22 09:37:52.945014'),
	(14, 50, true, '2026-11-22 09:37:52.953339'),
	(15, 60, true, '2026-11-22 09:37:52.959877'),
	(16, 70, true, '2026-11-22 09:37:52.970109'),
	(17, 80, true, '2026-11-22 09:37:52.971181'),
	(18, 81, true, '2026-11-22 09:37:52.973164'),
	(19, 82, true, '2026-11-22 09:37:52.980006'),
	(20, 84, true, '2026-11-22 09:37:52.987469');












INSERT INTO public.leases VALUES
	('replica/jq3fycfzte52mtpnbvkvj2rrm8', 'jq3fycfzte52mtpnbvkvj2rrm8', 1795340293229);



INSERT INTO public.messages VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', '0000010000000002', 1795340275154),
	('27y5qc5nhbe4ej5pevwsjhdr84', '0000010000000003', 1795340275187);



INSERT INTO public.oauth_clients VALUES
	('mc_83m1gxxnq500exjgak2edn8smc', 'Test', '["https://app.example.com/cb"]', true, '', 1795340279431, 0);



INSERT INTO public.oauth_codes VALUES
	('c095b869e9c0568e506bc4e5ed77b12aeb185c6349f9a641c531b1909188cd1e', 'kgt566kh1m1p8qrb8zh3j46wj4', 'mc_83m1gxxnq500exjgak2edn8smc', 'https://app.example.com/cb', 'DksyTyvjKJMTgEpPXzLiaCJ1P325hYFdr6STK5uo-WM', 'http://127.0.0.1:28490/mcp', 1795340339544, true);



INSERT INTO public.oauth_connections VALUES
	('kgt566kh1m1p8qrb8zh3j46wj4', '27y5qc5nhbe4ej5pevwsjhdr84', 'm42y6njhedgbkyg90acacrbzpc', 'mc_83m1gxxnq500exjgak2edn8smc', 'Test', 1, false, 1795340279539, 0, 0);



INSERT INTO public.oauth_tokens VALUES
	('3968a1d0b67c06164d8006ee5c62018011196fc9da1c39367cb1f7cba4ea16ed', 'kgt566kh1m1p8qrb8zh3j46wj4', false, 1795341179572, false),
	('c4818062a4943218372b631ddcc347b25d5cc37351aad66ed44d2f0a967843c4', 'kgt566kh1m1p8qrb8zh3j46wj4', true, 1797932279572, false);






INSERT INTO public.patch_counts VALUES
	('27y5qc5nhbe4ej5pevwsjhdr84', 'fm9d88shgd9mfpjp9ea3qwe1ac', '', 0),
	('27y5qc5nhbe4ej5pevwsjhdr84', 'fm9d88shgd9mfpjp9ea3qwe1ac', '2026-10', 1),
	('27y5qc5nhbe4ej5pevwsjhdr84', '7yzc5axxv5knmd5jxyrbwqbe2c', '', 2);






INSERT INTO public.policies VALUES
	('7yzc5axxv5knmd5jxyrbwqbe2c', '27y5qc5nhbe4ej5pevwsjhdr84', 'Kiosk', 'KIOSK', 'AGENT', false, 1, '', 'null', '', 1795340274274, 1795340274274, false, 0, '', 0, 0, '{"settings":{"CAMERA":"BLOCK"}}'),
	('h1whx4bpqq2ra1v6zqtw1p3s9r', '27y5qc5nhbe4ej5pevwsjhdr84', 'Headsets', 'HEADSETS', 'AGENT', true, 1, '', 'null', '', 1795340274474, 1795340274474, false, 0, '', 0, 0, '{"settings":{}}'),
	('fm9d88shgd9mfpjp9ea3qwe1ac', '27y5qc5nhbe4ej5pevwsjhdr84', 'Warehouse', 'WAREHOUSE', 'PLATFORM', false, 2, '', 'null', '', 1795340274144, 1795340274547, false, 2, '', 1795340274561, 1795340274561, '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true},"bluetoothDisabled":true}');



INSERT INTO public.policy_pushes VALUES
	('fm9d88shgd9mfpjp9ea3qwe1ac', 1, 1),
	('fm9d88shgd9mfpjp9ea3qwe1ac', 2, 2);



INSERT INTO public.policy_revisions VALUES
	('fm9d88shgd9mfpjp9ea3qwe1ac', 1, 1, 1795340274144, 'SYSTEM', 'operator', 'operator', 'Warehouse', 'CREATE', '', '', 'null', '', '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true}}'),
	('7yzc5axxv5knmd5jxyrbwqbe2c', 1, 1, 1795340274274, 'SYSTEM', 'operator', 'operator', 'Kiosk', 'CREATE', '', '', 'null', '', '{"settings":{"CAMERA":"BLOCK"}}'),
	('h1whx4bpqq2ra1v6zqtw1p3s9r', 1, 1, 1795340274474, 'SYSTEM', 'operator', 'operator', 'Headsets', 'CREATE', '', '', 'null', '', '{"settings":{}}'),
	('fm9d88shgd9mfpjp9ea3qwe1ac', 2, 2, 1795340274547, 'SYSTEM', 'operator', 'operator', 'Warehouse', 'PORTAL', '', '', 'null', '', '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true},"bluetoothDisabled":true}');



INSERT INTO public.proposals VALUES
	('prp_s0f0pvef3fjr7zyxjg4k9kaw4g', '27y5qc5nhbe4ej5pevwsjhdr84', 'update_policy_settings', 'PENDING', 'NORMAL', 'Change settings of Warehouse', 'In the policy "Warehouse", which 1 device uses, sets SMS to BLOCK.', 'fm9d88shgd9mfpjp9ea3qwe1ac', 'Warehouse', 2, 'fm9d88shgd9mfpjp9ea3qwe1ac', 'Warehouse', '', 'API_KEY', 'c01px9t33ckanh78hr7h4dw33r', '', 'ci', 1795340279179, 1795340879179, '', '', '', 0, 0, 0, '', '', '{"changes":[{"setting":"SMS","value":"BLOCK"}]}', '[{"label":"SMS","value":"BLOCK","previousValue":"NOT_SET"}]', '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true},"bluetoothDisabled":true,"smsDisabled":true}');












INSERT INTO public.sessions VALUES
	('rdgrknyy73gytzhvmz6vtvhf0r', '5467bcbd14c2b3b8145c424209901f1c8c37e12324e3691593d0929fd139bed6', 'm42y6njhedgbkyg90acacrbzpc', '27y5qc5nhbe4ej5pevwsjhdr84', 1795340279346, 1795340279346, 1795340279346, '127.0.0.1', 'curl/7.88.1');






INSERT INTO public.signups VALUES
	('bfaa71cm6kaptv0azgwmd7a968', '27y5qc5nhbe4ej5pevwsjhdr84', 'signupUrls/C37a22fc694d188a814423b79e804f3c2', 1795340273607, 'enterprises/LC9kn96oxwo', 'http://127.0.0.1:28491/signup/C37a22fc694d188a814423b79e804f3c2', '');



INSERT INTO public.users VALUES
	('m42y6njhedgbkyg90acacrbzpc', '27y5qc5nhbe4ej5pevwsjhdr84', 'admin@acme.test', 'admin@acme.test', 'admin', 1023, 'null', '$argon2id$v=19$m=19456,t=2,p=1$pmf89gm/P0nuICdx3B94sA$o0Eaa+YyntYUtcS4FiXLb+EGE/t3gBK4+/zx+U4SoOo', false, 1795340273751, 1795340279346);



SELECT pg_catalog.setval('public.goose_db_version_id_seq', 20, true);




