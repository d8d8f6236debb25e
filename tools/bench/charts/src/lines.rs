// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Lines over positions that grow by factors.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::chart::{Chart, COLOURS};

pub(crate) fn draw(
    chart: &Chart,
    along: &str,
    positions: &[u32],
    root: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Box<dyn Error>> {
    // Factors are steps of equal size, so each position is its place in the list.
    let last = positions.len().saturating_sub(1) as f64;
    let mut context = ChartBuilder::on(root)
        .caption(&chart.title, ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(50)
        .y_label_area_size(90)
        .build_cartesian_2d(-0.2..last + 0.2, 0.0..chart.top(std::iter::empty()))?;
    context
        .configure_mesh()
        .x_desc(along)
        .y_desc(&chart.unit)
        .x_labels(5 * positions.len())
        .light_line_style(WHITE)
        .y_label_formatter(&|value| format!("{value:.0}"))
        .x_label_formatter(&|place| label(positions, *place))
        .label_style(("sans-serif", 14))
        .draw()?;
    for (index, series) in chart.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let places = series.values.iter().enumerate();
        let points: Vec<_> = places
            .filter_map(|(place, value)| value.map(|value| (place as f64, value)))
            .collect();
        context
            .draw_series(LineSeries::new(points, colour.filled().stroke_width(2)).point_size(4))?
            .label(&series.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], colour.stroke_width(2)));
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}

/// The position at a place of the list, and nothing between places.
fn label(positions: &[u32], place: f64) -> String {
    let nearest = place.round();
    if (place - nearest).abs() > 0.01 || nearest < 0.0 {
        return String::new();
    }
    positions
        .get(nearest as usize)
        .map(u32::to_string)
        .unwrap_or_default()
}
