//! The map: five tables in `src/ARCHITECTURE.md`.
//!
//! ```text
//! | room | owns | may import |             rooms, each below all that it imports
//! | room | names only types of |            rooms that arrange what others compute
//! | room in a room | owns | may import of the room around it |
//! | package | at home in |                 every dependency, and parts of std that are walled
//! | file with unsafe code | what for |     every such file, from src/
//! ```

/// A row of the table of rooms.
pub struct Room {
    pub name: String,
    /// Rooms it may name. Empty with `std`.
    pub imports: Vec<String>,
    /// Whether it is code of the binary, which sees the library as any user does.
    pub outside: bool,
}

/// A package, or a part of std like `std::net`, and the rooms that may name it.
pub struct Package {
    pub name: String,
    /// Rooms; `None`: every room.
    pub homes: Option<Vec<String>>,
}

/// A folder of a room, and the files of that room that it may name.
pub struct Inner {
    /// From `src/`: `cli/top`.
    pub path: Vec<String>,
    pub imports: Vec<String>,
}

/// What `src/ARCHITECTURE.md` says.
pub struct Map {
    pub rooms: Vec<Room>,
    pub inner: Vec<Inner>,
    /// Rooms, and those of whose items they name only types and constants.
    pub types_only: Vec<(String, Vec<String>)>,
    pub packages: Vec<Package>,
    /// Files with unsafe code, from `src/`.
    pub unsafe_files: Vec<String>,
}

impl Map {
    /// Reads the tables of the page; `Err` says which is missing.
    pub fn read(page: &str) -> Result<Self, String> {
        let rooms = table(page, &["room", "owns", "may import"])?;
        let types_only = table(page, &["room", "names only types of"])?;
        let inner = ["room in a room", "owns", "may import of the room around it"];
        let inner = table(page, &inner)?;
        let packages = table(page, &["package", "at home in"])?;
        let unsafe_files = table(page, &["file with unsafe code", "what for"])?;
        Ok(Self {
            rooms: rooms.iter().map(|row| room(row)).collect(),
            inner: inner.iter().map(|row| inner_room(row)).collect(),
            types_only: types_only
                .iter()
                .map(|row| (row[0].clone(), names(&row[1])))
                .collect(),
            packages: packages.iter().map(|row| package(row)).collect(),
            unsafe_files: unsafe_files
                .into_iter()
                .map(|mut row| row.remove(0))
                .collect(),
        })
    }

    pub fn room(&self, name: &str) -> Option<&Room> {
        self.rooms.iter().find(|room| room.name == name)
    }
}

fn room(row: &[String]) -> Room {
    const PUBLIC: &str = "the library's public items";
    let outside = row[2].contains(PUBLIC);
    let imports = names(&row[2].replace(PUBLIC, "").replace("std", ""));
    Room {
        name: row[0].clone(),
        imports,
        outside,
    }
}

fn inner_room(row: &[String]) -> Inner {
    Inner {
        path: row[0].split('/').map(String::from).collect(),
        imports: names(&row[2]),
    }
}

fn package(row: &[String]) -> Package {
    let homes = match row[1].as_str() {
        "every room" => None,
        "nowhere" => Some(Vec::new()),
        rooms => Some(names(rooms)),
    };
    Package {
        name: row[0].clone(),
        homes,
    }
}

fn names(cell: &str) -> Vec<String> {
    cell.split([' ', ','])
        .filter(|name| !name.is_empty())
        .map(String::from)
        .collect()
}

/// The rows of the table of the page that has these heads, without backticks.
fn table(page: &str, heads: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let mut lines = page.lines().map(|line| cells(line.trim()));
    if !lines.any(|line| line.as_deref().is_some_and(|row| row == heads)) {
        let heads = heads.join("`, `");
        return Err(format!(
            "src/ARCHITECTURE.md: no table with the heads `{heads}`"
        ));
    }
    Ok(lines
        .skip(1)
        .map_while(|row| row.filter(|row| row.len() == heads.len()))
        .collect())
}

fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    let plain = |cell: &str| cell.trim().replace('`', "");
    Some(inner.split('|').map(plain).collect())
}
