//! `GET /v1/images`.

use serde_json::Value;

use crate::server::{TestServer, store_of};

/// The same in the order of a list.
const IMAGES_BY_NAME: [&str; 4] = ["icf", "inline-dwarf4", "outliner", "swift-names"];

const IMAGES: [&str; 4] = ["inline-dwarf4", "swift-names", "icf", "outliner"];

pub(crate) fn images_are_found_by_name_and_by_the_first_digits_of_their_ids() {
    let (store, ids) = store_of(&IMAGES);
    let server = TestServer::start(store.path(), &[]);
    let list = |query: &str| server.get(&format!("/v1/images?{query}")).json();
    let ids_of = |list: &Value| -> Vec<String> {
        let images = list["images"].as_array().expect("a list").iter();
        images.map(|image| image["id"].as_str().expect("an id").to_owned()).collect()
    };
    let all = list("");
    assert_eq!((&all["total"], ids_of(&all).len()), (&4.into(), 4));
    let names: Vec<_> = all["images"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, IMAGES_BY_NAME);
    assert_eq!(ids_of(&list("search=SWIFT")), [ids[1].clone()]);
    let digits = &ids[2][..9].to_uppercase();
    for start in [digits.clone(), format!("{}-{}", &digits[..8], &digits[8..]), ids[2].clone()] {
        assert_eq!(ids_of(&list(&format!("search={start}"))), [ids[2].clone()], "{start}");
    }
    let first = list("limit=1");
    assert_eq!((&first["total"], ids_of(&first)), (&4.into(), ids_of(&all)[..1].to_vec()));
    assert_eq!(list("search=no+such+image")["total"], 0);
    for limit in ["0", "10001"] {
        let answer = server.get(&format!("/v1/images?limit={limit}"));
        assert_eq!(answer.status, 400, "{limit}");
        let detail = format!("found `limit={limit}`, expected 1 to 10000");
        assert_eq!(answer.json()["detail"], detail.as_str());
    }
    // A deleted image is listed no more.
    assert_eq!(server.delete(&format!("/v1/images/{}", ids[0]), &[]).status, 200);
    assert!(!ids_of(&list("")).contains(&ids[0]));
}
